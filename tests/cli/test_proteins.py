"""ESM-2, which reads proteins, for the commands of the program."""

import json
import shutil

import program
from foreign import golden_case, write_foreign
from program import settings


class Proteins(program.Case):
    def imported(self, name):
        case = write_foreign(name, self.folder / "theirs")
        self.assertIn(name, self.succeed("import", "theirs", "--out", "model").stdout)
        return case

    def contacts(self, text, *options):
        run = self.succeed("explain", "model", text, "--view", "contacts", "--json", *options)
        return json.loads(run.stdout)

    def test_residues_are_filled_in(self):
        case = self.imported("EsmForMaskedLM")
        text = case["texts"][1]
        record = json.loads(self.succeed("predict", "model", "--json", "--details", stdin=text).stdout)
        tokens = record["source_tokens"]
        self.assertEqual(tokens[:4], ["<cls>", "M", "K", "<mask>"])
        self.assertEqual(tokens[-2:], ["<mask>", "<eos>"])
        found = record["predictions"][0]
        places = [i for i, token in enumerate(tokens) if token == "<mask>"]
        for place, best in zip(places, (0, 3), strict=True):
            self.assertAlmostEqual(2.718281828 ** found["log_probabilities"][place], case["answers"][1][best],
                                   places=5)
        filled = self.succeed("predict", "model", stdin="MKTAYIAKQR").stdout
        self.assertEqual(filled.strip(), "MKTAYIAKQR")
        for method in ("rollout", "gradient_x_input", "occlusion", "integrated_gradients", "decomposition"):
            run = self.attend("explain", "model", text, "--method", method, "--json")
            if run.returncode != 0:
                self.assertEqual((run.returncode, run.stderr.count("\n")), (2, 1), run.stderr)
        self.write("proteins.tsv", "".join(f"{one}\t{one}\n" for one in ("MKTAYIAKQR", "MLLA")))
        self.succeed("evaluate", "model", "--data", "proteins.tsv")

    def test_contacts_are_those_of_transformers(self):
        case = self.imported("EsmForMaskedLM")
        for text, expected in zip(case["texts"], case["contacts"], strict=True):
            record = self.contacts(text)
            self.assertEqual((record["title"], record["source"]), ("contacts", record["target"]))
            self.assertNotIn("<cls>", record["source"])
            for row, theirs in zip(record["weights"], expected, strict=True):
                for ours, number in zip(row, theirs, strict=True):
                    self.assertAlmostEqual(ours, number, places=5)
        for file, sign in (("c.svg", b"<svg"), ("c.png", b"\x89PNG"), ("c.npz", b"PK"), ("c.html", b"contacts"),
                           ("c.graphml", b"graph")):
            self.succeed("explain", "model", "MKTA", "--view", "contacts", "--out", file)
            self.assertIn(sign, (self.folder / file).read_bytes())
        for option in (("--layer", 1), ("--head", 1), ("--method", "rollout")):
            self.refuse("explain", "model", "MKTA", "--view", "contacts", *option, names=["contacts", option[0][2:]])

    def test_without_a_contact_head_contacts_are_refused(self):
        write_foreign("EsmForMaskedLM", self.folder / "theirs", lambda name: "contact_head" not in name)
        self.succeed("import", "theirs", "--out", "model")
        self.refuse("explain", "model", "MKTA", "--view", "contacts", names=["contact head", "import"])
        self.succeed("explain", "model", "MKTA", "--out", "page.html")
        self.assertNotIn('"contacts"', (self.folder / "page.html").read_text())

    def test_another_model_begins_with_the_weights(self):
        text = self.imported("EsmForMaskedLM")["texts"][0]
        before = self.contacts(text)
        self.write("pairs.tsv", f"{text}\tfolded\nLLLVVV\tloose\n" * 8)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--init", "model", "--out", "tuned",
                     *settings({"model.type": "classifier", "model.pooling": "first", "train.steps": 2,
                                "train.replicas": 1, "train.learning_rate": 1e-3}))
        config = (self.folder / "tuned" / "config.toml").read_text()
        for line in ("token_dropout = 0.12", "contact_head = true", 'positions = "rotary"'):
            self.assertIn(line, config)
        shutil.rmtree(self.folder / "model")
        (self.folder / "tuned").rename(self.folder / "model")
        after = self.contacts(text)
        self.assertEqual(after["source"], before["source"])
        self.assertNotEqual(after["weights"], before["weights"])

    def test_an_export_is_what_was_imported(self):
        for name in ("EsmModel", "EsmForMaskedLM", "EsmForSequenceClassification"):
            case = self.imported(name)
            self.assertIn(name, self.succeed("export", "model", "--out", "written").stdout)
            written = json.loads((self.folder / "written" / "config.json").read_text())
            for key in ("model_type", "architectures", "hidden_size", "rope_theta", "token_dropout",
                        "position_embedding_type", "mask_token_id", "pad_token_id", "layer_norm_eps"):
                self.assertEqual(written[key], case["files"]["config.json"][key], key)
            self.succeed("import", "written", "--out", "again")
            command = "embed" if name == "EsmModel" else "predict"
            answers = [self.succeed(command, model, "--json", stdin=case["texts"][0]).stdout
                       for model in ("model", "again")]
            self.assertEqual(*answers)
            for folder in ("theirs", "model", "written", "again"):
                shutil.rmtree(self.folder / folder)

    def test_what_is_not_read_is_named(self):
        def change(key, value):
            config = {**golden_case("EsmForMaskedLM")["files"]["config.json"], key: value}
            self.write("theirs/config.json", json.dumps(config))

        write_foreign("EsmForMaskedLM", self.folder / "theirs")
        for key, value in (("position_embedding_type", "absolute"), ("is_folding_model", True),
                           ("hidden_act", "relu"), ("num_attention_heads", 8), ("rope_theta", 1)):
            change(key, value)
            self.refuse("import", "theirs", "--out", "model", names=[key])


if __name__ == "__main__":
    program.main()
