"""Models of transformers become model folders for the other commands."""

import base64
import json
import re
import shutil
import struct
import zlib

import program
from foreign import write_foreign
from program import settings


def png_of_size(width, height):
    """A black image with a header of this size and only one row of pixels."""
    def chunk(kind, content):
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes(width + 1))) + chunk(b"IEND", b""))


class Import(program.Case):
    def imported(self, name):
        case = write_foreign(name, self.folder / "theirs")
        told = self.succeed("import", "theirs", "--out", "model").stdout
        self.assertIn(name, told)
        return case

    def methods(self):
        """Returns the method names from the table of `explain --markdown`."""
        rows = re.findall(r"^\| `(\w+)` \|", self.succeed("explain", "--markdown").stdout, re.M)
        self.assertIn("rollout", rows)
        return rows

    def explain_by_all(self, text, first="[CLS]"):
        """Each method answers, or gives a reason in one line."""
        answered = 0
        for method in self.methods():
            run = self.attend("explain", "model", text, "--method", method, "--json")
            if run.returncode == 0:
                record = json.loads(run.stdout.splitlines()[0])
                self.assertEqual(record["source"][0], first, method)
                answered += 1
            else:
                self.assertEqual((run.returncode, run.stderr.count("\n")), (2, 1), run.stderr)
        self.assertGreaterEqual(answered, 5)

    def test_vectors_are_printed(self):
        case = self.imported("BertModel")
        text, expected = case["texts"][0], case["answers"][0]
        plain, blank = self.succeed("embed", "model", stdin=f"{text}\n\n").stdout.splitlines()
        record = json.loads(self.succeed("embed", "model", "--json", "--tokens", stdin=text).stdout)
        self.assertEqual(blank, "")
        for shown, number in zip(map(float, plain.split()), record["vector"], strict=True):
            self.assertAlmostEqual(shown, number, places=6)
        for ours, theirs in zip(record["vector"], expected, strict=True):
            self.assertAlmostEqual(ours, theirs, places=4)
        self.assertEqual(record["tokens"][0], "[CLS]")
        self.assertEqual(len(record["vectors"]), len(record["tokens"]))
        self.refuse("predict", "model", stdin=text, names=["attend embed"])
        self.refuse("embed", "model", "--tokens", stdin=text, names=["--json"])
        checked = self.succeed("embed", "model", "--check", stdin=f"{text}\n\n{text} {text}\n{text}\n").stdout
        self.assertEqual(checked.splitlines()[0].split(" texts")[0], "3")
        self.assertEqual([line.split()[0] for line in checked.splitlines()[1:]], ["0", "0", "0"])
        self.refuse("embed", "model", "--check", "--json", stdin=text, names=["--check"])

    def test_what_cannot_be_read_whole_is_told(self):
        text = self.imported("BertModel")["texts"][0]
        lines = f"{text}\n\0\n{text}{' a' * 2000}\n"
        self.refuse("embed", "model", stdin="\0", names=["line 1", "NUL"])
        run = self.attend("embed", "model", "--skip-bad", "--json", stdin=lines)
        first, bad, cut = map(json.loads, run.stdout.splitlines())
        self.assertEqual((run.returncode, bad["vector"]), (1, []))
        self.assertIn("line 2", bad["error"])
        self.assertEqual(len(first["vector"]), len(cut["vector"]))
        self.assertIn("line 3: cut to the first", run.stderr)
        self.assertIn("1 of 3 lines cannot be read; their vectors are empty", run.stderr)

    def test_a_mask_is_filled_in_and_explained(self):
        case = self.imported("BertForMaskedLM")
        text = case["texts"][1]
        record = json.loads(self.succeed("predict", "model", "--json", "--details",
                                         stdin=text).stdout)
        self.assertEqual(record["unknown"], [])
        self.assertNotIn("unknown", self.succeed("predict", "model", stdin=text).stderr)
        spans = record["source_spans"]
        self.assertEqual((spans[0], spans[-1]), (None, None))  # [CLS] and [SEP]
        self.assertEqual([text[begin:end] for begin, end in spans[1:-1]], text.split())
        place = record["source_tokens"].index("[MASK]")
        found = record["predictions"][0]
        self.assertAlmostEqual(2.718281828 ** found["log_probabilities"][place],
                               case["answers"][1][0], places=5)
        for i, token in enumerate(record["source_tokens"]):
            if i != place:
                self.assertEqual(found["tokens"][i], token)
        self.assertIn("paris is the", found["target"])
        self.explain_by_all(text)

    def test_labels_are_answered_and_explained(self):
        case = self.imported("DistilBertForSequenceClassification")
        text = case["texts"][0]
        lines = self.succeed("predict", "model", "--beam", 2, "--nbest", 2, stdin=text).stdout
        found = {label: float(score) for _, label, score in
                 (line.split("\t") for line in lines.splitlines())}
        for label, expected in zip(("LABEL_0", "LABEL_1"), case["answers"][0], strict=True):
            self.assertAlmostEqual(found[label], expected, places=3)
        self.write("pairs.tsv", f"{text}\tLABEL_1\nParis\tLABEL_0\n")
        self.succeed("evaluate", "model", "--data", "pairs.tsv")
        self.explain_by_all(text)

    def test_layers_in_turn_are_answered_and_explained(self):
        case = self.imported("ModernBertForSequenceClassification")
        config = (self.folder / "model" / "config.toml").read_text()
        for line in ('scopes = "all; window:1"', 'rotary_bases = "500; 20"', "gated = true",
                     "first_norm = false", "hidden_norm = true"):
            self.assertIn(line, config)
        record = json.loads(self.succeed("predict", "model", "--json", "--beam", 2, "--nbest", 2,
                                         stdin=case["texts"][1]).stdout)
        found = {each["target"]: each["log_probability"] for each in record["predictions"]}
        for label, expected in zip(("LABEL_0", "LABEL_1"), case["answers"][1], strict=True):
            self.assertAlmostEqual(found[label], expected, places=5)
        self.explain_by_all(case["texts"][1], "<s>")

    def test_images_are_answered_and_explained(self):
        for name in ("ViTForImageClassification", "DeiTForImageClassification"):
            case = self.imported(name)
            for source, expected in zip(case["texts"], case["answers"], strict=True):
                self.write("one.png", base64.b64decode(source.partition(",")[2]))
                for asked in (source, "one.png"):
                    record = json.loads(self.succeed("predict", "model", "--json", "--beam", 2,
                                                     "--nbest", 2, stdin=asked).stdout)
                    found = {each["target"]: each["log_probability"]
                             for each in record["predictions"]}
                    for label, number in zip(("LABEL_0", "LABEL_1"), expected, strict=True):
                        self.assertAlmostEqual(found[label], number, places=5)
            if name.startswith("ViT"):
                shutil.rmtree(self.folder / "model")
                shutil.rmtree(self.folder / "theirs")
        self.explain_by_all("one.png", "row 1, column 1")
        self.succeed("explain", "model", "one.png", "--out", "page.html")
        self.succeed("explain", "model", "one.png", "--view", "model", "--out", "heads.svg")

    def test_a_text_is_continued_and_explained(self):
        case = self.imported("GPT2LMHeadModel")
        text = case["texts"][0]
        record = json.loads(self.succeed("predict", "model", "--json", "--details", "--maximum-length", 5,
                                         stdin=text).stdout)
        found = record["predictions"][0]
        for log, expected in zip(found["log_probabilities"], case["answers"][0]):
            self.assertAlmostEqual(2.718281828 ** log, expected, places=4)
        # No token is put before the text, and tokens are shown as they occur in it.
        self.assertEqual(record["source_tokens"][0], "the")
        self.assertEqual("".join(record["source_tokens"]), text)
        japanese = json.loads(self.succeed("explain", "model", "a 東", "--maximum-length", 1, "--json").stdout)
        self.assertIn("東", "".join(japanese["source"]))
        self.assertFalse(set("Ġæ") & set("".join(japanese["source"])), japanese["source"])
        self.assertEqual(record["unknown"], [])
        self.explain_by_all(text, "the")
        self.write("text.txt", f"{text}\n\n  {text}\n")
        measured = json.loads(self.succeed("evaluate", "model", "--data", "text.txt", "--json").stdout)
        self.assertEqual(measured["unknown_tokens"], 0)
        self.succeed("train", "--data", "text.txt", "--valid", "text.txt", "--init", "model", "--out",
                     "tuned", *settings({"train.steps": 1, "train.replicas": 1}))
        self.succeed("predict", "tuned", "--maximum-length", 3, stdin=text)

    def test_a_text_is_translated_and_explained(self):
        case = self.imported("MarianMTModel")
        text = case["texts"][1]
        record = json.loads(self.succeed("predict", "model", "--json", "--details", "--maximum-length", 5,
                                         stdin=text).stdout)
        found = record["predictions"][0]
        self.assertEqual(found["target"], case["said"][1])
        for log, expected in zip(found["log_probabilities"], case["answers"][1]):
            self.assertAlmostEqual(2.718281828 ** log, expected, places=4)
        source = record["source_tokens"]
        self.assertEqual((source[0], source.count("[</s>]"), source[-1]), (">>fra<<", 2, "[</s>]"))
        self.explain_by_all(text, ">>fra<<")
        self.succeed("explain", "model", text, "--out", "page.html")
        # Targets are split by their own tokenizer, and only the end token is appended.
        self.write("pairs.tsv", f"{text}\tPARIS %\n" * 4)
        measured = json.loads(self.succeed("evaluate", "model", "--data", "pairs.tsv", "--json", "--metric",
                                           "perplexity").stdout)
        self.assertGreater(measured["unknown_tokens"], 0)
        self.assertLess(0, measured["loss"])
        self.assertLess(measured["loss"], 10)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--init", "model", "--out",
                     "tuned", *settings({"train.steps": 1, "train.replicas": 1}))
        for name in ("source.spm", "target.spm"):
            self.assertEqual((self.folder / "tuned" / name).read_bytes(), (self.folder / "theirs" / name).read_bytes())
        self.succeed("predict", "tuned", "--maximum-length", 3, stdin=text)

    def test_a_folder_says_how_answers_are_searched_for(self):
        case = write_foreign("MarianMTModel", self.folder / "theirs")
        self.write("theirs/generation_config.json", json.dumps(
            {"num_beams": 3, "max_new_tokens": 4, "min_new_tokens": 2, "no_repeat_ngram_size": 2}))
        told = self.succeed("import", "theirs", "--out", "model").stderr
        self.assertIn("num_beams = 3 becomes decode.beam = 3", told)
        self.assertIn("not supported: no_repeat_ngram_size = 2", told)
        text = case["texts"][1]

        def answers(*options):
            return self.succeed("predict", "model", "--json", "--nbest", "1", *options, stdin=text).stdout

        self.assertEqual(answers(), answers("--beam", "3", "--maximum-length", "4"))
        self.assertNotEqual(answers(), answers("--maximum-length", "3"))
        # A default gives way to what was given.
        self.assertEqual(answers("--maximum-length", "1"), answers("--maximum-length", "1", "--minimum-length", "1"))
        self.assertEqual(answers("--minimum-length", "6"), answers("--maximum-length", "6", "--minimum-length", "6"))
        self.assertEqual(self.succeed("predict", "model", "--nbest", "3", stdin=text).stdout.count("\n"), 3)
        self.refuse("predict", "model", "--nbest", "4", names=["--nbest 4: a beam of 3 has no more"])
        self.write("pairs.tsv", f"{text}\tPARIS %\n" * 4)
        measured = json.loads(self.succeed("evaluate", "model", "--data", "pairs.tsv", "--json", "--metric",
                                           "perplexity").stdout)
        self.assertEqual(measured["beam"], 3)
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--init", "model", "--out",
                     "tuned", *settings({"train.steps": 1, "train.replicas": 1}))
        for model in ("model", "tuned"):
            self.assertIn("maximum_length = 4\n", (self.folder / model / "config.toml").read_text())

    def test_another_model_begins_with_the_weights(self):
        self.imported("BertModel")
        self.write("pairs.tsv", "the cat sees\tanimal\nParis is the capital\tcity\n" * 8)
        run = self.succeed(
            "train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--init", "model", "--out", "tuned",
            "--set", "model.type=classifier",
            *settings({"train.replicas": 1, "train.steps": 1, "train.batch": 8,
                       "train.learning_rate": 1e-9, "train.weight_average": 0}))
        self.assertRegex(run.stdout + run.stderr, r"\b36 of 38 weights begin as in model")
        answered = self.succeed("predict", "tuned", stdin="the cat sees\n").stdout.strip()
        self.assertIn(answered, ("animal", "city"))
        # The encoder has the imported weights.
        vectors = [json.loads(self.succeed("embed", model, "--tokens", "--json",
                                           stdin="Paris is the cat\n").stdout)["vectors"]
                   for model in ("model", "tuned")]
        for ours, theirs in zip(*vectors, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                self.assertAlmostEqual(a, b, places=5)

    def test_weights_are_read_as_they_were_trained(self):
        self.imported("BertModel")
        self.write("pairs.tsv", "the cat sees\tanimal\nParis is the capital\tcity\n" * 8)
        for setting, kept in (("model.activation=relu", '"gelu"'), ("model.heads=4", "2"),
                              ("model.epsilon=1e-5", "1e-12"), ("model.normalise_input=false", "true"),
                              ("model.maximum_source_length=16", "40")):
            self.refuse("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--init", "model",
                        "--out", "tuned", *settings({"model.type": "classifier"}), "--set", setting,
                        names=[setting.split("=")[0], "--init model", kept, "leave it out"])
        self.refuse("train", "--data", "pairs.tsv", "--init", "model", "--out", "tuned",
                    names=["model.type = embedder", "classifier"])

    def test_an_export_is_what_was_imported(self):
        for name in ("BertModel", "BertForMaskedLM", "DistilBertForSequenceClassification",
                     "ModernBertModel", "ModernBertForMaskedLM",
                     "ModernBertForSequenceClassification", "ViTForImageClassification",
                     "DeiTForImageClassification", "GPT2LMHeadModel", "MarianMTModel"):
            case = write_foreign(name, self.folder / "theirs")
            self.succeed("import", "theirs", "--out", "model")
            self.assertIn(name, self.succeed("export", "model", "--out", "written").stdout)
            theirs = json.loads((self.folder / "theirs" / "config.json").read_text())
            written = json.loads((self.folder / "written" / "config.json").read_text())
            for key in ("hidden_size", "dim", "n_embd", "d_model", "model_type", "architectures",
                        "layer_norm_eps", "image_size", "layer_types",
                        "eos_token_id" if name.startswith(("GPT2", "Marian")) else "dim"):
                self.assertEqual(written.get(key), theirs.get(key), key)
            for file in ("tokenizer.json", "source.spm", "target.spm"):
                if (self.folder / "model" / file).exists():
                    self.assertEqual((self.folder / "written" / file).read_bytes(),
                                     (self.folder / "model" / file).read_bytes())
            if name.startswith("Marian"):
                self.assertEqual(*(json.loads((self.folder / folder / "vocab.json").read_text())
                                   for folder in ("theirs", "written")))
            self.succeed("import", "written", "--out", "again")
            command = ["embed"] if name.endswith("BertModel") else ["predict"]
            if name.startswith(("GPT2", "Marian")):
                command = ["predict", "--maximum-length", 5]
            answers = [self.succeed(*command, model, "--json", stdin=case["texts"][1]).stdout
                       for model in ("model", "again")]
            self.assertEqual(*answers)
            self.refuse("export", "model", "--out", "written", names=["exists already"])
            for folder in ("theirs", "model", "written", "again"):
                shutil.rmtree(self.folder / folder)

    def test_an_export_is_the_translator_after_training(self):
        source, other = self.imported("MarianMTModel")["texts"][:2]
        self.write("pairs.tsv", f"{source}\t{other}\n{other}\t{source}\n")
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--init", "model", "--out", "tuned",
                     *settings({"train.steps": 3, "train.replicas": 1, "train.learning_rate": 0.01}))
        self.check_trained_export(source)

    def check_trained_export(self, source):
        """The export of `tuned` answers as it does, and has the tensors of `theirs`."""
        self.succeed("export", "tuned", "--out", "written")
        names = [set(program.read_safetensors(self.folder / folder / "model.safetensors")[1])
                 for folder in ("theirs", "written")]
        self.assertEqual(*names)
        self.succeed("import", "written", "--out", "again")
        before, tuned, again = (self.succeed("predict", model, "--json", "--details", "--maximum-length", 5,
                                             stdin=f"{source}\n").stdout for model in ("model", "tuned", "again"))
        self.assertEqual(tuned, again)
        self.assertNotEqual(before, tuned)
        settings_there, settings_here = (
            re.findall(r"(?m)^(?:fixed|shared)_.*", (self.folder / folder / "config.toml").read_text())
            for folder in ("model", "again"))
        self.assertEqual(settings_there, settings_here)

    def test_an_export_is_t5_after_training(self):
        source, other = self.imported("T5ForConditionalGeneration")["texts"][:2]
        self.write("pairs.tsv", f"{source}\t{other}\n{other}\t{source}\n")
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--init", "model", "--out", "tuned",
                     *settings({"train.steps": 3, "train.replicas": 1, "train.learning_rate": 0.01}))
        self.check_trained_export(source)

    def test_an_export_is_gpt2_after_training(self):
        texts = self.imported("GPT2LMHeadModel")["texts"]
        self.write("text.txt", "".join(f"{text}\n" for text in texts))
        self.write("pairs.tsv", f"{texts[0]}\t{texts[1]}\n")
        for data in ("text.txt", "pairs.tsv"):
            self.succeed("train", "--data", data, "--valid", data, "--init", "model", "--out", "tuned",
                         *settings({"train.steps": 3, "train.replicas": 2, "train.learning_rate": 0.01}))
            self.check_trained_export(texts[0])
            for folder in ("tuned", "written", "again"):
                shutil.rmtree(self.folder / folder)

    def test_an_export_answers_numbers_in_their_unit(self):
        text, other = self.imported("BertModel")["texts"][:2]
        self.write("numbers.tsv", f"{text}\t120\n{other}\t80\n" * 4)
        self.succeed("train", "--data", "numbers.tsv", "--valid", "numbers.tsv", "--init", "model",
                     "--out", "tuned", *settings({
                         "model.type": "classifier", "data.target": "number", "train.steps": 3,
                         "train.replicas": 1, "model.pooling": "first", "model.hidden": 8,
                         "model.hidden_activation": "tanh"}))
        self.succeed("export", "tuned", "--out", "written")
        written = json.loads((self.folder / "written" / "config.json").read_text())
        self.assertEqual(written["problem_type"], "regression")
        self.succeed("import", "written", "--out", "again")
        ours, again = ([float(line) for line in
                        self.succeed("predict", model, stdin=f"{text}\n{other}\n").stdout.split()]
                       for model in ("tuned", "again"))
        for one, number in zip(again, ours, strict=True):
            self.assertAlmostEqual(one, number, places=3)
            self.assertGreater(number, 50)

    def test_an_export_has_the_layer_behind_the_mean(self):
        text = write_foreign("BertModel", self.folder / "theirs")["texts"][0]
        dense = self.folder / "theirs" / "2_Dense"
        dense.mkdir()
        (dense / "config.json").write_text(json.dumps({
            "in_features": 8, "out_features": 3, "bias": False,
            "activation_function": "torch.nn.modules.activation.Tanh"}))
        numbers = struct.pack("<24f", *(0.1 * (i % 7) - 0.3 for i in range(24)))
        (dense / "model.safetensors").write_bytes(program.safetensors(
            {"linear.weight": {"dtype": "F32", "shape": [3, 8], "data_offsets": [0, 96]}}, numbers))
        (self.folder / "theirs" / "modules.json").write_text(json.dumps(
            [{"path": "", "type": "models.Transformer"}, {"path": "2_Dense", "type": "models.Dense"},
             {"path": "3_Normalize", "type": "models.Normalize"}]))
        self.succeed("import", "theirs", "--out", "model")
        self.succeed("export", "model", "--out", "written")
        modules = json.loads((self.folder / "written" / "modules.json").read_text())
        self.assertEqual([module["path"] for module in modules],
                         ["", "1_Pooling", "2_Dense", "3_Normalize"])
        self.succeed("import", "written", "--out", "again")
        self.assertEqual(*(self.succeed("embed", model, stdin=text).stdout
                           for model in ("model", "again")))

    def test_what_is_not_exported_is_named(self):
        self.imported("BertModel")
        config = self.folder / "model" / "config.toml"
        whole = config.read_text()
        self.write("model/config.toml", re.sub(r"(?m)^score = .*", 'score = "dot"', whole))
        self.refuse("export", "model", "--out", "written", names=["model.score", "BertModel"])
        self.write("model/config.toml", re.sub(r"(?m)^fill_length = .*", "fill_length = 30", whole))
        self.refuse("export", "model", "--out", "written", names=["data.fill_length is 30"])
        self.write("pairs.tsv", "a\tb c\n")
        steps = settings({"train.steps": 1, "train.replicas": 1})
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", "own", *steps)
        self.refuse("export", "own", "--out", "written", names=["model.type is seq2seq", "tagger"])
        for folder in ("theirs", "model"):
            shutil.rmtree(self.folder / folder)
        source = self.imported("T5ForConditionalGeneration")["texts"][0]
        self.import_as_earlier_versions()
        self.write("pairs.tsv", f"{source}\t{source}\n")
        self.succeed("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--init", "model", "--out",
                     "translator", *steps)
        self.refuse("export", "translator", "--out", "written",
                    names=["translator", "T5For", "train a new import"])
        for folder in ("theirs", "model"):
            shutil.rmtree(self.folder / folder)
        text = self.imported("GPT2LMHeadModel")["texts"][0]
        self.import_as_earlier_versions()
        self.write("text.txt", f"{text}\n")
        self.succeed("train", "--data", "text.txt", "--valid", "text.txt", "--init", "model", "--out",
                     "tuned", *steps)
        self.refuse("export", "tuned", "--out", "written", names=["tuned", "train a new import"])

    def import_as_earlier_versions(self):
        """Removes the settings that keep what the class of transformers lacks."""
        config = self.folder / "model" / "config.toml"
        config.write_text(re.sub(r"(?m)^(fixed_biases|fixed_output_bias|shared_tokens) = .*\n", "",
                                 config.read_text()))

    def test_what_is_wrong_is_one_line(self):
        write_foreign("BertModel", self.folder / "theirs")
        weights = self.folder / "theirs" / "model.safetensors"
        whole = weights.read_bytes()
        for bytes_, name in ((whole[:-1], "model.safetensors"), (whole[:5], "too short"),
                             (b"\xff" * 8 + whole[8:], "header"), (b"", "model.safetensors")):
            weights.write_bytes(bytes_)
            self.refuse("import", "theirs", "--out", "model", names=[name])
        weights.unlink()
        self.write("theirs/pytorch_model.bin", b"PK")
        self.refuse("import", "theirs", "--out", "model", names=["pickled", "save_pretrained"])
        self.write("theirs/config.json", "[" * 100000)
        self.refuse("import", "theirs", "--out", "model", names=["config.json"])
        self.write("theirs/config.json", json.dumps({"model_type": "llama"}))
        self.refuse("import", "theirs", "--out", "model", names=["'llama'", "bert"])
        self.refuse("import", "nowhere", "--out", "model", names=["nowhere", "config.json"])
        self.refuse("train", "--data", "x", "--out", "y", "--set", "model.type=embedder",
                    names=["--init"])
        self.refuse("import", "theirs/config.json", "--out", "model", names=["is a file", "name the folder"])
        for name, words in (("adapter_config.json", ["PEFT", "merge_and_unload"]), ("model_index.json", ["diffusers"]),
                            ("small.gguf", ["small.gguf", "llama.cpp"]), ("other", ["holds no config.json"])):
            (self.folder / f"of {name}").mkdir()
            self.write(f"of {name}/{name}", "{}")
            self.refuse("import", f"of {name}", "--out", "model", names=words)

    def refuse_folder(self, name, change, names):
        """Refuses to import a folder changed by `change`; nothing is written."""
        folder = self.folder / "theirs"
        write_foreign(name, folder)
        change(folder)
        self.refuse("import", "theirs", "--out", "model", names=names)
        shutil.rmtree(folder)

    def test_claims_of_size_are_one_line(self):
        def config(**changed):
            def change(folder):
                path = folder / "config.json"
                path.write_text(json.dumps(json.loads(path.read_text()) | changed))
            return change

        self.refuse_folder("BertModel", config(hidden_size=65536, num_attention_heads=1024,
                                               num_hidden_layers=8, intermediate_size=262144,
                                               vocab_size=900000), ["GB"])
        self.refuse_folder("BertModel", config(vocab_size=10 ** 12), ["vocab_size"])
        self.refuse_folder("ViTForImageClassification", config(image_size=10 ** 5), ["image_size"])
        self.refuse_folder("ViTForImageClassification", config(hidden_size=None), ["hidden_size"])

    def test_shards_of_more_than_the_memory_are_one_line(self):
        """200 GB in sparse files."""
        folder = self.folder / "theirs"
        write_foreign("BertModel", folder)
        (folder / "model.safetensors").unlink()
        shards = [f"{i}.safetensors" for i in range(4)]
        for shard in shards:
            with open(folder / shard, "wb") as file:
                file.truncate(50 * 10 ** 9)
        self.write("theirs/model.safetensors.index.json",
                   json.dumps({"weight_map": {str(i): shard for i, shard in enumerate(shards)}}))
        run = self.attend("import", "theirs", "--out", "model")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertRegex(run.stderr, r"\Aattend: [^\n]*(shards of over|safetensors)[^\n]*\n\Z")
        self.assertFalse((self.folder / "model").exists())

    def test_shards_and_vocabularies_that_are_broken_are_one_line(self):
        def cut_shard(folder):
            whole = folder / "model.safetensors"
            content = whole.read_bytes()
            (folder / "one.safetensors").write_bytes(content[:-100])
            (folder / "model.safetensors.index.json").write_text(
                json.dumps({"weight_map": {"x": "one.safetensors"}}))
            whole.unlink()

        def tokenizer(change):
            def changed(folder):
                path = folder / "tokenizer.json"
                document = json.loads(path.read_text())
                change(document["model"])
                path.write_text(json.dumps(document))
            return changed

        def hole(model):
            model["vocab"][next(iter(model["vocab"]))] = 10 ** 6

        def double(model):
            first, second = list(model["vocab"])[:2]
            model["vocab"][first] = model["vocab"][second]

        def merge_without_blank(model):
            model["merges"][0] = "".join(model["merges"][0])

        def words(content):
            def changed(folder):
                (folder / "tokenizer.json").unlink()
                (folder / "vocab.txt").write_text(content)
            return changed

        def older_pairs(merges):
            def changed(folder):
                model = json.loads((folder / "tokenizer.json").read_text())["model"]
                (folder / "tokenizer.json").unlink()
                (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
                (folder / "merges.txt").write_text(merges)
            return changed

        self.refuse_folder("BertModel", cut_shard, ["one.safetensors"])
        self.refuse_folder("BertModel", tokenizer(hole), ["tokenizer.json"])
        self.refuse_folder("BertModel", tokenizer(double), ["tokenizer.json"])
        self.refuse_folder("RobertaForMaskedLM", tokenizer(merge_without_blank),
                           ["tokenizer.json", "merges"])
        self.refuse_folder("BertModel", words("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[PAD]\n"),
                           ["vocab.txt:6", "twice"])
        self.refuse_folder("BertModel", words("a\n"), ["no special token"])
        self.refuse_folder("RobertaForMaskedLM", older_pairs("#version: 0.2\nab\n"),
                           ["merges.txt:2", "'ab'", "a space between"])

    def test_an_image_of_any_size_is_one_line(self):
        self.imported("ViTForImageClassification")
        for width, height, names in ((10 ** 5, 10 ** 5, ["large.png", "100000 x 100000"]),
                                     (1, 10 ** 7, ["large.png"])):
            self.write("large.png", png_of_size(width, height))
            self.refuse("predict", "model", stdin="large.png", names=names)


if __name__ == "__main__":
    program.main()
