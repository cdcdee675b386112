"""Preparing data: byte-pair codes, tokens, a check of the data, and training on two files."""

import gzip
import json
import lzma
import pathlib
import shutil

import program
from program import settings

SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"


def sentences(count):
    """Returns sources and targets of invented words with endings that byte-pair codes find."""
    stems, endings = "bal dor fim gup kes lun mit nor".split(), "ing er ed".split()
    words = [stem + ending for stem in stems for ending in endings]
    rows = [f"{words[i % 24]}, {words[(7 * i + i // 24) % 24]}!" for i in range(count)]
    return rows, [row.upper() for row in rows]


class Data(program.Case):

    def test_bpe_agrees_with_published_pieces(self):
        pieces, words = SHARED / "multi30k-bpe10k", SHARED / "multi30k" / "tok"
        if not pieces.exists() or not words.exists():
            program.skip(f"{pieces} or {words} is not there")
        for language in ("en", "de"):
            for theirs, name in (("train", "train"), ("valid", "val"),
                                 ("test.2016", "test_2016_flickr")):
                expected = gzip.open(pieces / f"{theirs}.{language}.gz", "rt").read()
                text = gzip.open(words / f"{name}.lc.norm.tok.{language}.gz", "rt").read()
                run = self.succeed("data", "bpe", "apply", "--codes", pieces / "code.gz",
                                   stdin=text)
                self.assertEqual(run.stdout, expected, (language, name))
                self.assertEqual(self.succeed("data", "bpe", "undo", stdin=expected).stdout,
                                 text.replace("  ", " "))
        texts = [words / f"train.lc.norm.tok.{language}.gz" for language in ("en", "de")]
        self.succeed("data", "bpe", "train", *texts, "--merges", 10000, "--out", "codes")
        self.assertEqual((self.folder / "codes").read_text(),
                         gzip.open(pieces / "code.gz", "rt").read())

    def test_bpe_learns_and_applies(self):
        self.write("a.gz", gzip.compress(b"low low low low low lowest lowest\n"))
        self.write("b.xz", lzma.compress(b"NEWER newer newer newer newer newer wider wider wider\n"))
        run = self.succeed("data", "bpe", "train", "a.gz", "b.xz", "--merges", 3, "--out", "codes",
                           "--lowercase", "--json")
        self.assertEqual(json.loads(run.stdout), {"path": "codes", "merges": 3, "words": 4})
        self.assertEqual((self.folder / "codes").read_text(),
                         "#version: 0.2\ne r</w>\nl o\nw er</w>\n")
        run = self.succeed("data", "bpe", "apply", "--codes", "codes", stdin="lower  low\r\n\nx")
        self.assertEqual(run.stdout, "lo@@ wer lo@@ w\n\nx\n")
        self.refuse("data", "bpe", "apply", "--codes", "a.gz", names=["a.gz:1"])

    def test_columns_of_a_table(self):
        rows = "".join(f'{i},"{source}, so",{target}\r\n' for i, (source, target) in
                       enumerate(line.split("\t") for line in program.PAIRS.splitlines()))
        self.write("t.csv", "id,word,sound\r\n" + rows)
        columns = ["--source-column", "word", "--target-column", "sound"]
        train = ["train", "--data", "t.csv", "--out", "model",
                 *settings(program.SMALL | {"train.steps": 3})]
        self.refuse(*train, names=["t.csv", "id, word, sound", "--source-column"])
        self.assertFalse((self.folder / "model").exists())
        self.refuse("train", "--data", ".", "--out", "model", *columns, names=["--source-column"])
        self.succeed(*train, *columns)
        run = self.succeed("evaluate", "model", "--data", "t.csv", *columns, "--json")
        self.assertEqual(json.loads(run.stdout)["examples"], 60)
        lines = [line.split("\t") for line in program.PAIRS.splitlines()]
        self.write("t.jsonl", "".join(json.dumps({"id": i, "word": f"{source}, so", "sound": target}) + "\n"
                                      for i, (source, target) in enumerate(lines)))
        other = self.succeed("evaluate", "model", "--data", "t.jsonl", *columns, "--json")
        self.assertEqual(*[json.loads(each.stdout)["known_loss"] for each in (other, run)])
        self.refuse("evaluate", "model", "--data", "t.jsonl", names=["t.jsonl", "--source-column"])
        self.refuse("evaluate", "model", "--data", "t.csv", "--source-column", "words",
                    "--target-column", "sound", names=["'words'", "id, word, sound"])

    def test_first_rows_of_csv(self):
        self.write("empty.csv", "text,stars\n")
        self.refuse("train", "--data", "empty.csv", "--out", "model",
                    names=["empty.csv: is empty", "a row for each example"],
                    told="attend: empty.csv: the first row names the columns 'text' and 'stars'\n")
        rows = "".join(f"text {i},{'good' if i % 3 else 'bad'}\n" for i in range(60))
        self.write("bare.csv", rows)
        self.write("named.csv", "text,stars\n" + rows)
        options = ["--out", "model", *settings(program.SMALL | {"train.steps": 1})]
        run = self.succeed("train", "--data", "bare.csv", *options)
        self.assertIn("the second is also a target: if the file has no header", run.stderr)
        self.assertIn("bare.csv: all targets together are 2 texts; if they are labels, set model.type = classifier",
                      run.stderr)
        run = self.succeed("train", "--data", "named.csv", "--out", "labels",
                           *settings({"train.steps": 1, "model.type": "classifier"}))
        self.assertNotIn("also a target", run.stderr)
        self.assertNotIn("model.type", run.stderr)

    def test_bpe_applies_to_what_it_was_learned_from(self):
        text = "cafe\u0301 cafe\u0301\n"
        self.write("text", text)
        for options in ([], ["--normalise", "nfd"], ["--normalise", "none"], ["--tokenise"]):
            self.succeed("data", "bpe", "train", "text", "--merges", 9, "--out", "codes", *options)
            run = self.succeed("data", "bpe", "apply", "--codes", "codes", *options, stdin=text)
            self.assertNotIn("@@", run.stdout, options)
        capitals = self.succeed("data", "bpe", "apply", "--codes", "codes", "--lowercase",
                                stdin=b"\xef\xbb\xbf" + text.upper().encode()).stdout
        self.assertEqual(capitals, "caf\u00e9 caf\u00e9\n")

    def found_faults(self, *arguments):
        """Output of a check of data that training would refuse."""
        run = self.attend("data", "check", *arguments)
        self.assertEqual((run.returncode, run.stderr), (1, ""), arguments)
        return run.stdout

    def test_check_of_a_folder_and_a_table(self):
        self.write("train.tsv", "a\tx\nb\ty\n")
        self.write("test.tsv", "a\tx\n")
        told = json.loads(self.succeed("data", "check", ".", "--json").stdout)
        self.assertEqual([file["lines"] for file in told["files"]], [2, 1])
        self.assertEqual(told["overlaps"][0]["pairs"], 1)
        self.write("t.csv", 'id,"text",stars\n1,"so, so",3\n2,good,4\n')
        columns = ["--source-column", "text", "--target-column", "stars"]
        page = self.succeed("data", "check", "t.csv", *columns).stdout
        self.assertIn("2 lines", page)
        self.assertIn("the columns 'text' and 'stars'", page)
        self.write("t.jsonl", '{"text": "so", "stars": 3}\n\n{"text": null, "stars": 4}\n')
        told = self.found_faults("t.jsonl", *columns)
        self.assertIn("the columns 'text' and 'stars'", told)
        self.assertIn("t.jsonl:3: 'text' is null", told)
        self.write("images.tsv", "none.png\t1\n")
        page = self.found_faults("images.tsv")
        self.assertIn("1 lines name files that cannot be read (1)", page)
        self.assertIn("none.png: no such file", page)
        self.write("molecules.tsv", "CCO\t1.5\nC1CC\t2\nCO\tnan\n")
        told = self.found_faults("molecules.tsv", "--set", "data.target=number", "--set", "data.source_units=smiles")
        self.assertIn("2 lines cannot be read (2, 3)", told)
        self.assertIn("molecules.tsv:2: SMILES 'C1CC'", told)
        (self.folder / "empty").mkdir()
        self.refuse("data", "check", "empty", names=["empty: holds no train.tsv"])

    def test_check_of_other_formats(self):
        (self.folder / "cora").mkdir()
        self.write("cora/nodes.tsv", "a\ttrain\tx\t1\nb\tvalid\ty\nc\ttest\tx\nc\t-\t\n")
        self.write("cora/edges.tsv", "a b\na d\n")
        page = self.found_faults("cora")
        for part in ("nodes of other classes", "lines that cannot be read", "cora/nodes.tsv:4: ",
                     "cora/edges.tsv:2: "):
            self.assertIn(part, page)
        told = json.loads(self.found_faults("cora", "--json"))["files"][0]
        self.assertEqual([told[key] for key in ("nodes", "nodes_to_learn_from", "malformed")],
                         [3, 1, 2])
        self.write("shop.csv", "who,item\nu,a\nu,b\nu,c\nu,a\nv,a\n")
        shop = ["--set", "data.format=interactions", "--set", "data.user_column=who"]
        told = json.loads(self.succeed("data", "check", "shop.csv", *shop, "--json").stdout)
        self.assertEqual(told["files"][0]["items"], 3)
        self.assertIn("1 users have only one item", told["files"][0]["remarks"][0])
        self.write("many.tsv", "u a\nu b\n" + "u\n" * 100)
        told = json.loads(self.found_faults("many.tsv", *shop, "--json"))
        self.assertEqual(told["files"][0]["malformed"], 100)
        self.assertEqual(len(told["files"][0]["remarks"]), 20)
        self.refuse("data", "check", "many.tsv", "--set", "data.bpe=codes", names=["data.bpe"])

    def test_check_finds_that_nothing_can_be_learned(self):
        """Data without a bad line at which training stops."""
        (self.folder / "graph").mkdir()
        self.write("graph/nodes.tsv", "a\ttrain\tx\nb\ttrain\ty\n")
        self.write("graph/edges.tsv", "a b\n")
        self.write("class.tsv", "a b\tgood\nc d\tgood\n")
        self.write("number.tsv", "a b\t5\nc d\t5\n")
        for data, training, told in (
                ("class.tsv", ["model.type=classifier"], "made of the one token 'good'"),
                ("number.tsv", ["model.type=classifier", "data.target=number"], "the deviation is 0"),
                ("graph", ["model.type=graph"], "no node has split valid")):
            sets = [part for each in training for part in ("--set", each)]
            self.assertIn("training stops: ", self.found_faults(data, *sets))
            self.assertIn(told, json.loads(self.found_faults(data, *sets, "--json"))["files"][0]["fault"])
            self.refuse("train", "--data", data, "--out", "model", *sets, names=[told])

    def test_check_takes_the_defaults_of_a_type(self):
        sentences = [f"who won?\tRed {i} won.\tRed" for i in range(3)]
        self.write("facts.tsv", "\n".join(sentences + ["what?\tIt rained.\t", "who?\tIt rained.\tIt\t0"]) + "\n")
        for given in ("model.type=reader", "data.target=span"):
            page = self.succeed("data", "check", "facts.tsv", "--set", given).stdout
            self.assertNotIn("have ", page)
        self.write("sets.tsv", "1 2\ta\n1,2 3\tb\n")
        self.assertIn("1 lines cannot be read (2)", self.found_faults("sets.tsv", "--set", "model.type=set"))
        self.write("shop.tsv", "u a\nu b\nu c\nu d\n")
        told = self.succeed("data", "check", "shop.tsv", "--set", "model.type=recommender", "--json").stdout
        self.assertEqual(json.loads(told)["files"][0]["items"], 4)
        self.refuse("data", "check", "sets.tsv", "--set", "model.type=net", names=["model.type"])
        self.refuse("data", "check", "sets.tsv", "--set", "model.depth=3", names=["does not change how data are read"])

    def test_check_counts_sentences_and_their_labels(self):
        self.write("t.conll", "Ann B-PER\nlives O\n\n" * 20 + "Bob B-PRE\nran\n")
        page = self.found_faults("t.conll")
        for part in ("21 sentences, 19 of them repeated", "label B-PER: 20",
                     "1 sentences cannot be read (62)", "t.conll:62: "):
            self.assertIn(part, page)

    def test_tokens(self):
        text = "Don't stop (ever)!\n\nnaïve 3.5\n"
        tokens = self.succeed("data", "tokenise", stdin=text).stdout
        self.assertEqual(tokens.splitlines()[0], "Don ￭'￭ t stop (￭ ever ￭) ￭!")
        self.assertEqual(self.succeed("data", "tokenise", "--undo", stdin=tokens).stdout, text)

    def test_check(self):
        self.write("train.tsv", "".join(f"text {i}\t{'good' if i % 3 else 'bad'}\n"
                                        for i in range(30)) + "no tab\n")
        self.write("test.tsv.gz", gzip.compress(b"text 3\tbad\ntext 99\tfair\n"))
        page = self.found_faults("train.tsv", "test.tsv.gz")
        for part in ("31 lines", "label good: 20", "1 lines cannot be read (31)",
                     "test.tsv.gz shares 1 sources (50.00 %) with train.tsv, 1 of them",
                     "1 labels that train.tsv lacks: fair"):
            self.assertIn(part, page)
        told = json.loads(self.found_faults("train.tsv", "test.tsv.gz", "--json"))
        self.assertEqual(told["files"][0]["labels"], {"good": 20, "bad": 10})
        self.assertEqual(told["files"][0]["odd"],
                         [{"kind": "malformed", "count": 1, "lines": [31]}])
        self.assertEqual(told["files"][0]["source"]["words"]["median"], 2)
        self.assertEqual(told["overlaps"], [{"path": "test.tsv.gz", "sources": 1, "pairs": 1,
                                             "examples": ["text 3"], "new_labels": ["fair"]}])
        self.refuse("data", "check", "train.tsv", "--target", "a", "b", names=["--target: 2"])

    def test_train_on_two_files_with_codes(self):
        sources, targets = sentences(96)
        for name, rows in (("train.en", sources[:80] + [""]), ("train.de", targets[:80] + ["x"]),
                           ("valid.en", sources[80:]), ("valid.de", targets[80:])):
            self.write(name + ".gz", gzip.compress("".join(row + "\n" for row in rows).encode()))
        self.succeed("data", "bpe", "train", "train.en.gz", "train.de.gz", "--merges", 40,
                     "--tokenise", "--lowercase", "--out", "codes")
        chosen = program.SMALL | {"data.bpe": "codes", "data.tokenise": "true",
                                  "data.lowercase": "true", "train.epochs": 2,
                                  "model.maximum_source_length": 60}
        run = self.succeed("train", "--data", "train.en.gz", "--target", "train.de.gz", "--valid",
                           "valid.en.gz", "--valid-target", "valid.de.gz", "--out", "model",
                           "--source-units", "bpe", "--target-units", "bpe", *settings(chosen))
        self.assertIn("train.en.gz: 1 pairs with an empty side are left out", run.stderr)
        # The model folder is self-contained.
        shutil.move(self.folder / "model", self.folder / "moved")
        (self.folder / "codes").unlink()
        answers = self.succeed("predict", "moved", stdin=sources[0] + "\n").stdout
        self.assertNotIn("@@", answers)
        self.assertNotIn("￭", answers)
        told = json.loads(self.succeed("evaluate", "moved", "--data", "valid.en.gz", "--target",
                                       "valid.de.gz", "--json").stdout)
        self.assertEqual(told["examples"], 16)
        run = self.succeed("evaluate", "moved", "--data", "train.en.gz", "--target", "train.de.gz",
                           "--json")
        self.assertEqual(json.loads(run.stdout)["examples"], 80)
        self.assertIn("train.en.gz: 1 pairs with an empty side are left out", run.stderr)
        self.refuse("evaluate", "moved", "--data", "train.en.gz", "--target", "valid.de.gz",
                    names=["train.en.gz:17", "has 16 lines"])


if __name__ == "__main__":
    program.main()
