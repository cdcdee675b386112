"""Proteins with pairs of correlated residues: an encoder that fills them in attends to the partner."""

import pathlib
import random
import re
import subprocess
import sys

import program
from program import settings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import contacts  # noqa: E402


class Maps(program.Case):
    def test_margins_are_taken_off(self):
        """A residue that all residues attend to is not a contact, for any weights."""
        chance = random.Random(3)
        size, planted = 25, {(2, 20), (5, 14), (8, 25)}
        weights = [[chance.uniform(0, 0.01) + (0.15 if j == 16 else 0) for j in range(size)]
                   for _ in range(size)]
        for first, second in planted:
            weights[second - 1][first - 1] += 0.1
            weights[first - 1][second - 1] += 0.1
        self.assertFalse(planted & set(contacts.strongest(weights, 3)))
        found = contacts.strongest(contacts.corrected(weights), 3)
        self.assertEqual(set(found), planted)
        self.assertEqual(contacts.precision(weights, planted), 3 / 5)

    def test_neighbours_are_left_out(self):
        weights = [[1.0 / (1 + abs(i - j)) for j in range(12)] for i in range(12)]
        self.assertTrue(all(j - i >= 6 for i, j in contacts.strongest(weights, 12)))


class Planted(program.Case):
    def test_attention_finds_them(self):
        """Runs the tool: it generates a family, trains the recipe and compares the map with the contacts."""
        run = subprocess.run(
            [sys.executable, ROOT / "tools/contacts.py", "--out", self.folder / "out", "--proteins", "50"],
            env=program.environment() | {"ATTEND_PROGRAM": program.PROGRAM}, capture_output=True,
            text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        told = re.fullmatch(r"12 strongest attentions that are contacts: (\S+) by the mean of 50 maps, "
                            r"(\S+) by each map, 0\.010 by chance\n", run.stdout)
        self.assertTrue(told, run.stdout)
        self.assertGreaterEqual(float(told[1]), 0.9)
        self.assertGreaterEqual(float(told[2]), 0.9)

    def test_a_tagger_begins_with_what_was_learned(self):
        self.succeed("data", "contacts", "--out", "family", "--count", 40, "--valid", 10, "--length",
                     30, "--contacts", 6)
        lines = (self.folder / "family/train.fasta").read_text().splitlines()
        self.assertEqual([len(line) for line in lines[1::2]], [30] * 40)
        self.assertEqual(len((self.folder / "family/contacts.tsv").read_text().splitlines()), 6)
        self.write("tags.tsv", "".join(f"{line}\t{'_h' * 15}\n" for line in lines[1::2]))
        small = {"data.source_units": "char", "data.target_units": "char", "model.depth": 16,
                 "model.feed_forward": 16, "model.heads": 2, "model.layers": 1,
                 "model.recurrent_layers": 1, "train.steps": 3, "train.replicas": 1}
        self.succeed("train", "--data", "family/train.fasta", "--valid", "family/valid.fasta",
                     "--out", "encoder", *settings(small | {"model.type": "encoder"}))
        run = self.succeed("train", "--data", "tags.tsv", "--out", "tagger", "--init", "encoder",
                           *settings(small | {"model.type": "tagger"}))
        # All weights but the head's.
        taken, every = re.search(r"(\d+) of (\d+) weights begin as in encoder", run.stderr).groups()
        self.assertEqual(int(every) - int(taken), 2)
        self.succeed("explain", "encoder", lines[1], "--out", "track.txt")
        self.assertIn(lines[1], (self.folder / "track.txt").read_text())

    def test_sizes_that_find_no_room(self):
        self.refuse("data", "contacts", "--out", "family", "--length", 20, "--contacts", 6,
                    names=["6 contacts", "20 residues"])


if __name__ == "__main__":
    program.main()
