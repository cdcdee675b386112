"""Molecules: a motif that decides the number is learned, and found again by an explanation."""

import json
import random
import re

import program
from program import settings

# A number is 1 where an amide is there; its parts occur without each other, too.
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
        """How often gradient x input is largest within the motif, of 30 molecules that have it."""
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
        """The atoms of a molecule, the motif's in the strongest colour."""
        self.succeed("explain", "model", "CCBrC(=O)NC", "--method", "gradient_x_input",
                     "--out", "x.molecule.svg")
        svg = (self.folder / "x.molecule.svg").read_text()
        atoms = re.findall(r'fill-opacity="([0-9.]+)"[^>]*><title>([^:]+):', svg)
        self.assertEqual([label for _, label in atoms], ["C", "C", "Br", "C", "O", "N", "C"])
        self.assertIn(max(range(len(atoms)), key=lambda i: float(atoms[i][0])), (3, 4, 5))
        self.assertEqual(svg.count("<path d="), 7, "six bonds, one of two lines")
        self.succeed("explain", "model", "CC", "--out", "x.molecule.png", "--method", "gradient")
        self.assertEqual((self.folder / "x.molecule.png").read_bytes()[:4], b"\x89PNG")


class BadMolecules(program.Case):
    def test_are_named_with_their_line(self):
        for text, reason in (("C11C", "ring 1 begins and ends at atom 1"),
                             ("C[Xx]", "names no element"),
                             ("C=1CC-1", "ring 1 has one bond where it begins"),
                             ("C1CC", "ring 1 is opened and not closed"),
                             ("CC(C", "a branch is opened")):
            self.write("m.tsv", f"CCO\t1\n{text}\t0\n")
            self.refuse("train", "--data", "m.tsv", "--valid", "m.tsv", "--out", "model", "--set",
                        "model.type=classifier", "--set", "data.source_units=smiles",
                        names=["m.tsv:2", reason])
            self.assertFalse((self.folder / "model").exists())

    def test_what_is_no_molecule_is_not_drawn(self):
        self.write("t.tsv", "good film\t1\nbad film\t0\n" * 10)
        self.succeed("train", "--data", "t.tsv", "--valid", "t.tsv", "--out", "model",
                     *settings({"model.type": "classifier", "model.depth": 8, "train.steps": 2}))
        self.refuse("explain", "model", "good film", "--method", "gradient", "--out",
                    "x.molecule.svg", names=["x.molecule.svg", "SMILES 'goodfilm'"])
        self.assertFalse((self.folder / "x.molecule.svg").exists())


if __name__ == "__main__":
    program.main()
