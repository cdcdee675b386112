"""Molecules: a motif that determines the number is learned, and found by an explanation."""

import json
import random
import re

import program
from program import settings

# The number is 1 if there is an amide; its parts also occur separately.
MOTIF = "C(=O)N"
UNITS = ["C", "C", "O", "N", "S", "C(C)", "C(=O)", "C(N)", "C(F)", "CCl", "CBr", "c1ccccc1"]

SMALL = {"model.type": "classifier", "data.target": "number", "model.pooling": "sum",
         "model.depth": 32, "model.word_dropout": 0, "model.output_dropout": 0,
         "train.replicas": 1, "train.batch": 20, "train.warmup_steps": 20, "train.epochs": 14,
         "train.learning_rate": 1e-2}


def molecule(chance, has_motif):
    while True:
        units = chance.choices(UNITS, k=chance.randint(3, 9))
        if has_motif:
            units.insert(chance.randint(0, len(units)), MOTIF)
        text = "".join(units) + "C"
        if text.count(MOTIF) == has_motif:
            return text


def rows(count, seed):
    chance = random.Random(seed)
    return [(molecule(chance, i % 2), i % 2) for i in range(count)]


class Motif(program.Case):
    def train(self, **more):
        for part, count, seed in (("train", 1500, 1), ("valid", 100, 2)):
            self.write(f"{part}.tsv", "".join(f"{text}\t{number}\n"
                                              for text, number in rows(count, seed)))
        run = self.succeed("train", "--data", ".", "--out", "model", "--json",
                           *settings(SMALL | more))
        self.assertLess(json.loads(run.stdout)["valid_rmse"], 0.1)

    def found(self, places_of_motif):
        """Returns how often gradient x input is largest within the motif, of 30 molecules with it."""
        molecules = [text for text, number in rows(60, 3) if number]
        hits = 0
        for text in molecules:
            shown = json.loads(self.succeed("explain", "model", text, "--method",
                                            "gradient_x_input", "--json").stdout)
            scores = shown["scores"][0]
            hits += scores.index(max(scores)) in places_of_motif(text, shown["source"])
        return hits / len(molecules)

    def test_gradient_x_input_finds_it_among_symbols(self):
        self.train(**{"data.source_units": "smiles", "model.recurrent_layers": 1,
                      "model.cell": "gru"})

        def places(text, source):
            self.assertEqual("".join(source), text, "atoms of two letters are one symbol")
            before = re.findall("Cl|Br|.", text[:text.index(MOTIF)])
            return range(len(before), len(before) + len(MOTIF))

        self.assertGreaterEqual(self.found(places), 0.95)
        self.draws()

    def draws(self):
        """Draws the atoms of a molecule, with the motif in the strongest colour."""
        self.succeed("explain", "model", "CCBrC(=O)NC", "--method", "gradient_x_input",
                     "--out", "x.molecule.svg")
        svg = (self.folder / "x.molecule.svg").read_text()
        atoms = re.findall(r'fill-opacity="([0-9.]+)"[^>]*><title>([^:]+):', svg)
        self.assertEqual([label for _, label in atoms], ["C", "C", "Br", "C", "O", "N", "C"])
        self.assertIn(max(range(len(atoms)), key=lambda i: float(atoms[i][0])), (3, 4, 5))
        self.assertEqual(svg.count("<path d="), 7, "six bonds, one of two lines")
        self.succeed("explain", "model", "CC", "--out", "x.molecule.png", "--method", "gradient")
        self.assertEqual((self.folder / "x.molecule.png").read_bytes()[:4], b"\x89PNG")


# One nitrogen and one oxygen in a chain of carbons: is there a bond between them? The answer does
# not follow from counts of atoms, of bonds and of hydrogens.
def chains(count, seed):
    chance = random.Random(seed)
    for i in range(count):
        length, bound = chance.randint(7, 11), i % 2
        places = list(range(1, length - 1))
        first = chance.choice(places[:-1])
        second = first + 1 if bound else chance.choice([p for p in places if abs(p - first) > 1])
        atoms = ["C"] * length
        atoms[first], atoms[second] = chance.sample("NO", 2)
        yield "".join(atoms), "bound" if bound else "apart"


BONDS = {"model.type": "classifier", "data.source_units": "molecule", "model.bias": "none",
         "model.depth": 24, "model.heads": 2, "model.feed_forward": 24, "model.pooling": "sum",
         "model.dropout": 0, "model.output_dropout": 0, "train.replicas": 1, "train.batch": 20,
         "train.warmup_steps": 20, "train.epochs": 12, "train.learning_rate": 5e-3}


class Bonds(program.Case):
    def setUp(self):
        super().setUp()
        for part, count, seed in (("train", 600, 1), ("valid", 100, 2), ("test", 100, 3)):
            self.write(f"{part}.tsv", "".join(f"{text}\t{label}\n"
                                              for text, label in chains(count, seed)))

    def train(self, out, *more, **changed):
        run = self.succeed("train", "--data", ".", "--out", out, "--json", *more,
                           *settings(BONDS | changed))
        return json.loads(run.stdout)["valid_accuracy"]

    def test_decide(self):
        self.assertLess(self.train("bag", **{"model.layers": 0}), 0.7)
        self.assertGreater(self.train("model", **{"model.layers": 2}), 0.97)
        figures = json.loads(self.succeed("evaluate", "model", "--data", ".", "--json").stdout)
        self.assertGreater(figures["accuracy"], 0.97)
        self.answers()
        self.explains()
        self.continues()

    def answers(self):
        """Answers are the same for any order of atoms, single and in a batch."""
        texts = ["CCNOCCCC", "CCCCONCC", "[H]C(CC)CO[N]([H])CC name", "CCNCOCCC"]
        alone = [self.succeed("predict", "model", "--json", stdin=f"{text}\n").stdout
                 for text in texts]
        answers = [json.loads(line)["predictions"][0] for line in alone]
        self.assertEqual([answer["target"] for answer in answers],
                         ["bound", "bound", "bound", "apart"])
        for answer in answers[1:3]:
            self.assertAlmostEqual(answer["log_probability"], answers[0]["log_probability"],
                                   places=4)
        together = self.succeed("predict", "model", "--json",
                                stdin="".join(f"{text}\n" for text in texts)).stdout
        self.assertEqual(together, "".join(alone))

    def explains(self):
        """Weights exist only along bonds, and are drawn there."""
        shown = ("explain", "model", "CC(Cl)NO", "--view", "heads", "--layer", "1", "--head", "2")
        weights = json.loads(self.succeed(*shown, "--json").stdout)
        self.assertEqual(weights["source"], ["C", "C", "Cl", "N", "O"])
        bonds = {(0, 1), (1, 2), (1, 3), (3, 4)}
        for i, row in enumerate(weights["weights"]):
            self.assertAlmostEqual(sum(row), 1, places=5)
            for j, weight in enumerate(row):
                is_seen = i == j or (i, j) in bonds or (j, i) in bonds
                self.assertEqual(weight > 0, is_seen, (i, j))
        self.succeed(*shown, "--out", "x.molecule.svg")
        svg = (self.folder / "x.molecule.svg").read_text()
        self.assertEqual(svg.count('class="shade"'), 2 * len(bonds))
        self.assertIn("encoder 1, head 2", svg)
        answer = self.succeed("explain", "model", "CC(Cl)NO", "--method", "attention", "--json")
        self.assertEqual(len(json.loads(answer.stdout)["weights"][0]), 5)
        self.succeed("explain", "model", "CC(Cl)NO", "--out", "x.molecule.svg")
        self.assertNotIn("shade\"", (self.folder / "x.molecule.svg").read_text())
        self.succeed("explain", "model", "CC(Cl)NO", "--out", "x.html")

    def continues(self):
        """--resume gives the same weights as uninterrupted training; --init works, too."""
        whole = {"model.layers": 1, "train.epochs": 2, "train.schedule": "inverse_sqrt"}
        self.train("whole", **whole)
        self.train("parts", **(whole | {"train.epochs": 1}))
        self.succeed("train", "--data", ".", "--out", "parts", "--resume", "--set",
                     "train.epochs=2")
        weights = [(self.folder / name / "weights.safetensors").read_bytes()
                   for name in ("whole", "parts")]
        self.assertEqual(*weights)
        self.assertGreater(self.train("more", "--init", "model",
                                      **{"model.layers": 2, "train.epochs": 1}), 0.97)


class OneFile(program.Case):
    def test_spellings_of_a_molecule_are_on_one_side(self):
        """A single file with 40 molecules in three spellings, labelled by the spelling."""
        lines = []
        for i in range(40):
            chain = "C" * i
            lines += [f"c1ccccc1O{chain}\ta\n", f"C1=CC=CC=C1O{chain}\tb\n", f"[H]{chain}OC1=CC=CC=C1\tc\n"]
        self.write("m.tsv", "".join(lines))
        told = self.succeed("train", "--data", "m.tsv", "--out", "model",
                            *settings(BONDS | {"train.epochs": 1})).stderr
        train, valid = map(int, re.search(r"(\d+) training and (\d+) validation", told).groups())
        self.assertEqual(train + valid, 120)
        self.assertEqual((train % 3, valid % 3), (0, 0))
        self.assertGreater(valid, 0)


class BadMolecules(program.Case):
    def test_are_named_with_their_line(self):
        for text, reason in (("C11C", "ring 1 begins and ends at atom 1"),
                             ("C[Xx]", "names no element"),
                             ("C=1CC-1", "ring 1 begins with one bond"),
                             ("C1CC", "ring 1 is opened and not closed"),
                             ("CC(C", "a branch is opened")):
            self.write("m.tsv", f"CCO\t1\n{text}\t0\n")
            for units in ("smiles", "molecule"):
                self.refuse("train", "--data", "m.tsv", "--valid", "m.tsv", "--out", "model", "--set",
                            "model.type=classifier", "--set", f"data.source_units={units}",
                            names=["m.tsv:2", reason])
                self.assertFalse((self.folder / "model").exists())

    def test_settings_that_read_no_bonds_are_named(self):
        self.write("m.tsv", "CCO\t1\nCC\t0\n" * 10)
        for wrong, remedy in (({"model.layers": 1}, "model.bias = none"),
                              ({"model.type": "set"}, "model.inducing_points = 0"),
                              ({"model.type": "seq2seq"}, "take transformer, classifier or set"),
                              ({"model.type": "tagger"}, "not images, sounds, sets or molecules")):
            self.refuse("train", "--data", "m.tsv", "--valid", "m.tsv", "--out", "model",
                        *settings({"model.type": "classifier", "data.source_units": "molecule"}
                                  | wrong), names=[remedy])
            self.assertFalse((self.folder / "model").exists())

    def test_are_refused_by_a_model(self):
        self.write("m.tsv", "CCO\t1\nCC\t0\n" * 10)
        self.succeed("train", "--data", "m.tsv", "--valid", "m.tsv", "--out", "model",
                     *settings(BONDS | {"model.layers": 1, "train.epochs": 1}))
        self.refuse("predict", "model", stdin="C1C\n", names=["line 1", "ring 1 is opened"])
        self.write("bad.tsv", "CC\t1\nC(C\t0\n")
        self.refuse("evaluate", "model", "--data", "bad.tsv", names=["bad.tsv:2", "a branch is"])
        self.refuse("explain", "model", "C1C", names=["ring 1 is opened"])

    def test_what_is_no_molecule_is_not_drawn(self):
        self.write("t.tsv", "good film\t1\nbad film\t0\n" * 10)
        self.succeed("train", "--data", "t.tsv", "--valid", "t.tsv", "--out", "model",
                     *settings({"model.type": "classifier", "model.depth": 8, "train.steps": 2}))
        self.refuse("explain", "model", "good film", "--method", "gradient", "--out",
                    "x.molecule.svg", names=["x.molecule.svg", "SMILES 'good': 'g' at character 1"])
        self.assertFalse((self.folder / "x.molecule.svg").exists())


if __name__ == "__main__":
    program.main()
