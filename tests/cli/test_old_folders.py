"""Model folders of earlier versions: each loads and gives the answers of its version."""

import json
import pathlib
import shutil

import program

OLD = pathlib.Path(__file__).resolve().parents[1] / "old_folders"

# A row of answers.tsv: folder, source, answer of a beam of 2, its log probability. Folders were
# trained until the second answer was at least 6 % less probable, far more than rounding changes.


class OldFolders(program.Case):
    def test_answer_as_they_did(self):
        for answers in sorted(OLD.glob("*/answers.tsv")):
            for line in answers.read_text(encoding="utf-8").splitlines():
                name, source, target, log_probability = line.split("\t")
                with self.subTest(f"{answers.parent.name}/{name}"):
                    told = program.attend("predict", answers.parent / name, "--json", "--beam", "2",
                                       "--length-penalty", "0", stdin=source + "\n",
                                       cwd=answers.parent)
                    self.assertEqual(told.returncode, 0, told.stderr)
                    best = json.loads(told.stdout)["predictions"][0]
                    self.assertEqual(best["target"], target)
                    self.assertAlmostEqual(best["log_probability"], float(log_probability), delta=1e-4)

    def test_are_of_every_type(self):
        types = {path.name.split("_")[0] for path in OLD.glob("format_1/*/")}
        self.assertEqual(types, {"seq2seq", "transformer", "classifier", "vit", "lm", "encoder",
                                 "tagger", "recommender", "set", "graph"})

    def test_a_newer_format_is_refused_by_its_number(self):
        model = self.folder / "model"
        shutil.copytree(OLD / "format_1" / "seq2seq", model)
        path = model / "config.toml"
        whole = path.read_text()
        path.write_text("format = 1\n" + whole)
        self.succeed("predict", model, stdin="aea\n")
        path.write_text("format = 2\nunheard_of = 3\n" + whole)
        self.refuse("predict", model, names=["config.toml", "format is 2", "up to 1"],
                    stdin="aea\n")
        self.write("pairs.tsv", program.PAIRS)
        self.refuse("train", "--data", "pairs.tsv", "--out", "new", "--config", path,
                    names=["config.toml", "format is 2"])


if __name__ == "__main__":
    program.main()
