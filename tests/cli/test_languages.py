"""Translators between languages: imported, predicted, explained, served, trained further and refused."""

import json

import program
from foreign import write_files, write_foreign
from program import settings
from test_serve import Server

TEXT = "the cat sees"


class Languages(program.Case):
    """NLLB has four languages; its folder names no target."""

    def setUp(self):
        super().setUp()
        write_foreign("M2M100ForConditionalGeneration", self.folder / "theirs")
        generation = self.folder / "theirs/generation_config.json"
        keys = json.loads(generation.read_text())
        del keys["forced_bos_token_id"]
        generation.write_text(json.dumps(keys))
        self.succeed("import", "theirs", "--out", "nllb")

    def answer(self, *arguments, stdin=TEXT + "\n"):
        line = self.succeed("predict", "nllb", "--json", "--details", "--maximum-length", 4, *arguments,
                            stdin=stdin).stdout
        return json.loads(line)

    def test_answers_in_a_language(self):
        for source, target in (("eng_Latn", "fra_Latn"), ("zho_Hans", "deu_Latn")):
            answer = self.answer("--from", source, "--to", target, "--beam", 3)
            best = answer["predictions"][0]
            self.assertEqual(answer["source_tokens"][0], source)
            self.assertEqual((best["tokens"][0], best["log_probabilities"][0]), (target, 0))
            self.assertLessEqual(len(best["tokens"]), 5)
            self.assertNotIn("Latn", best["target"])
        self.assertEqual(self.answer("--to", "fra_Latn")["source_tokens"][0], "eng_Latn")

    def test_explains_and_measures_answers(self):
        told = json.loads(self.succeed("explain", "nllb", TEXT, "--to", "deu_Latn", "--target", "no dog",
                                       "--json").stdout)
        self.assertEqual(told["target"][0], "deu_Latn")
        self.assertEqual(told["source"][0], "eng_Latn")
        self.write("pairs.tsv", f"{TEXT}\tno dog\n")
        losses = [json.loads(self.succeed("evaluate", "nllb", "--to", to, "--data", "pairs.tsv", "--json",
                                          "--metric", "perplexity").stdout)["loss"] for to in ("deu_Latn", "fra_Latn")]
        self.assertNotEqual(*losses)

    def test_trains_further_for_a_pair_of_languages(self):
        self.write("pairs.tsv", "".join(f"{TEXT} {number}\tno dog\n" for number in range(40)))
        chosen = {"train.epochs": 1, "train.replicas": 1}
        self.refuse("train", "--data", "pairs.tsv", "--init", "nllb", "--out", "tuned", *settings(chosen),
                    names=["data.target_language"])
        chosen |= {"data.source_language": "deu_Latn", "data.target_language": "fra_Latn"}
        self.succeed("train", "--data", "pairs.tsv", "--init", "nllb", "--out", "tuned", *settings(chosen))
        answer = json.loads(self.succeed("predict", "tuned", "--json", "--details", stdin=TEXT + "\n").stdout)
        self.assertEqual(answer["source_tokens"][0], "deu_Latn")
        self.assertEqual(answer["predictions"][0]["tokens"][0], "fra_Latn")
        self.check_export("tuned", "deu_Latn", "fra_Latn")

    def check_export(self, folder, source, target):
        """An export has the model's languages, and answers as the model after another import."""
        self.assertIn("M2M100ForConditionalGeneration", self.succeed("export", folder, "--out", "exported").stdout)
        tokenizer = json.loads((self.folder / "exported/tokenizer_config.json").read_text())
        self.assertEqual([tokenizer.get(key) for key in ("src_lang", "tgt_lang")], [source, target])
        self.succeed("import", "exported", "--out", "again")
        lines = [self.succeed("predict", model, "--json", "--details", "--to", "zho_Hans", "--maximum-length", 5,
                              stdin=TEXT + "\n").stdout for model in (folder, "again")]
        self.assertEqual(*lines)

    def test_is_exported(self):
        self.check_export("nllb", "eng_Latn", None)

    def serve(self, folder):
        server = Server(folder, "--port", 0, cwd=self.folder)
        self.addCleanup(server.end)
        self.assertEqual(server.said, "attend: ready\n", server.errors)
        return server

    def test_serves_answers_in_the_languages_of_a_request(self):
        server = self.serve("nllb")

        def ask(**fields):
            status, _, body = server.ask("POST", "/v1/predict", {"texts": [TEXT], "maximum_length": 4, "details": True,
                                                                 **fields})
            return status, json.loads(body)

        status, body = ask(to="fra_Latn", **{"from": "zho_Hans"})
        self.assertEqual(status, 200, body)
        expected = self.answer("--from", "zho_Hans", "--to", "fra_Latn")
        self.assertEqual(body["answers"][0]["predictions"][0]["tokens"], expected["predictions"][0]["tokens"])
        self.assertEqual(body["answers"][0]["source_tokens"], expected["source_tokens"])
        for fields, name in (({"to": "fra_Lat"}, "did you mean fra_Latn?"), ({}, "none is chosen"),
                             ({"to": "fra_Latn", "from": "x"}, "no language")):
            status, body = ask(**fields)
            self.assertEqual(status, 422)
            self.assertIn(name, body["error"]["message"])

    def test_serves_explanations_in_the_languages_of_a_request(self):
        server = self.serve("nllb")
        languages = {"from": "zho_Hans", "to": "fra_Latn"}
        options = ["--from", "zho_Hans", "--to", "fra_Latn"]
        for fields, more in (({}, []), ({"target": "no dog"}, ["--target", "no dog"]),
                             ({"target": "no dog", "against": "dog no"},
                              ["--target", "no dog", "--against", "dog no"]),
                             ({"target": "no dog", "method": "integrated_gradients"},
                              ["--target", "no dog", "--method", "integrated_gradients"])):
            told = server.answer("/v1/explain", text=TEXT, beam=1, **languages, **fields)
            line = self.succeed("explain", "nllb", TEXT, "--json", *options, *more).stdout
            self.assertEqual(told["explanations"], [json.loads(each) for each in line.splitlines()])
        for fields, name in (({"to": "fra_Lat"}, "did you mean fra_Latn?"), ({}, "none is chosen"),
                             ({"to": "fra_Latn", "pair": "a"}, "leave to out")):
            self.assertIn(name, server.refusal("/v1/explain", 422, text=TEXT, **fields))
        off = server.answer("/v1/explain", text=TEXT, without=["encoder.1.head.1"], **languages)
        line = self.succeed("explain", "nllb", TEXT, "--json", *options, "--without", "encoder.1.head.1").stdout
        self.assertEqual(off["explanations"], [json.loads(line)])

    def test_serves_translations_to_other_clients(self):
        server = self.serve("nllb")
        expected = self.answer("--from", "zho_Hans", "--to", "fra_Latn")["predictions"][0]["target"]
        choice = server.answer("/v1/completions", prompt=TEXT, max_tokens=4, to="fra_Latn",
                               **{"from": "zho_Hans"})["choices"][0]
        self.assertEqual(choice["text"], expected)
        for stream in (False, True):
            self.assertIn("did you mean fra_Latn?", server.refusal("/v1/completions", 422, prompt=TEXT, stream=stream,
                                                                   to="fra_Lat"))
        # Without a limit, Hugging Face's client of translations.
        expected = json.loads(self.succeed("predict", "nllb", "--json", "--from", "zho_Hans", "--to", "fra_Latn",
                                           stdin=TEXT + "\n").stdout)["predictions"][0]["target"]
        chosen = {"src_lang": "zho_Hans", "tgt_lang": "fra_Latn"}
        named = {"generated_text": expected, "summary_text": expected, "translation_text": expected}
        self.assertEqual(server.answer("/", inputs=TEXT, parameters=chosen), [named])
        self.assertEqual(server.answer("/", inputs=[TEXT, TEXT], parameters=chosen), [named] * 2)
        self.assertIn("none is chosen", server.refusal("/", 422, inputs=TEXT, parameters={}))
        self.assertIn("did you mean fra_Latn?",
                      server.refusal("/", 422, inputs=TEXT, parameters={"tgt_lang": "fra_Lat", "src_lang": None}))
        self.assertIn("has more", server.refusal("/", 413, inputs="cat " * 600, parameters=chosen))
        self.assertEqual(server.answer("/", inputs=TEXT), server.answer("/embed", inputs=TEXT))
        schemas = json.loads(server.ask("GET", "/openapi.json")[2])["components"]["schemas"]
        for name in ("PredictRequest", "ExplainRequest", "CompletionsRequest"):
            self.assertLessEqual({"from", "to"}, set(schemas[name]["properties"]))

    def test_serves_translations_with_the_options_of_generate(self):
        server = self.serve("nllb")
        languages = {"src_lang": "zho_Hans", "tgt_lang": "fra_Latn"}

        def served(**fields):
            return server.answer("/", inputs=TEXT, parameters=languages | fields)[0]["translation_text"]

        def predicted(*options):
            line = self.succeed("predict", "nllb", "--json", "--from", "zho_Hans", "--to", "fra_Latn", *options,
                                stdin=TEXT + "\n").stdout
            return json.loads(line)["predictions"][0]["target"]

        for fields, options in (({"num_beams": 3, "max_new_tokens": 5}, ["--beam", 3, "--maximum-length", 5]),
                                ({"max_length": 4}, ["--maximum-length", 3]),
                                ({"min_length": 8, "max_length": 9}, ["--minimum-length", 7, "--maximum-length", 8]),
                                ({"do_sample": True, "seed": 3, "temperature": 2, "top_k": 9, "max_new_tokens": 6},
                                 ["--seed", 3, "--temperature", 2, "--top-k", 9, "--maximum-length", 6]),
                                ({"do_sample": False, "num_beams": 1}, ["--beam", 1])):
            expected = predicted(*options)
            # As the client sends them, and as older clients did.
            self.assertEqual(served(generate_parameters=fields), expected, fields)
            self.assertEqual(served(**fields), expected, fields)
        long = "cat " * 600
        self.assertEqual(len(server.answer("/", inputs=long, parameters=languages | {"truncation": "longest_first"})), 1)
        server.refusal("/", 413, inputs=long, parameters=languages | {"truncation": "do_not_truncate"})
        for fields, words in (({"generate_parameters": {"no_repeat_ngram_size": 2}},
                               "unknown field 'no_repeat_ngram_size'; there are max_new_tokens, max_length,"),
                              ({"generate_parameters": {"num_beam": 2}}, "did you mean num_beams?"),
                              ({"generate_parameters": {"num_beams": 2}, "num_beams": 2},
                               "num_beams is in parameters and in generate_parameters; send one of them"),
                              ({"max_length": 9, "max_new_tokens": 8}, "max_new_tokens and max_length limit the same"),
                              ({"do_sample": False, "top_p": 0.5}, "top_p is for sampling, and do_sample is false"),
                              ({"num_beams": 2, "top_p": 0.5}, "answers are sampled or searched for"),
                              ({"return_full_text": True}, "return_full_text is not for a model that answers with texts"),
                              ({"clean_up_tokenization_spaces": True}, "unknown field 'clean_up_tokenization_spaces'"),
                              ({"truncation": "only_second"}, "do_not_truncate, longest_first, only_first"),
                              ({"stop": ["a"]}, "take stop of /v1/completions"),
                              ({"details": True}, "details, decoder_input_details and watermark are not supported"),
                              ({"candidate_labels": ["a"]}, "unknown field 'candidate_labels'")):
            self.assertIn(words, server.refusal("/", 422, inputs=TEXT, parameters=languages | fields))
        self.assertIn("/v1/completions streams", server.refusal("/", 422, inputs=TEXT, parameters=languages, stream=True))
        self.assertIn("does not answer questions", server.refusal("/", 422, inputs={"question": "a", "context": "b"}))

    def test_refuses_what_is_no_language(self):
        self.refuse("predict", "nllb", stdin=TEXT + "\n", names=["4 languages", "--to"])
        self.refuse("predict", "nllb", "--to", "fra_Lat", stdin=TEXT + "\n", names=["did you mean fra_Latn?"])
        self.refuse("explain", "nllb", TEXT, "--from", "english", "--to", "fra_Latn", names=["english", "eng_Latn"])
        write_foreign("T5ForConditionalGeneration", self.folder / "t5")
        self.succeed("import", "t5", "--out", "flan")
        self.refuse("predict", "flan", "--to", "fra_Latn", stdin=TEXT + "\n", names=["no languages"])

    def test_reads_mbart(self):
        write_foreign("MBartForConditionalGeneration", self.folder / "mbart-theirs")
        self.succeed("import", "mbart-theirs", "--out", "mbart")
        line = self.succeed("predict", "mbart", "--json", "--details", "--to", "ro_RO", stdin=TEXT + "\n").stdout
        self.assertEqual(json.loads(line)["predictions"][0]["tokens"][0], "ro_RO")
        self.refuse("predict", "mbart", "--to", "ro_R", stdin=TEXT + "\n", names=["did you mean ro_RO?"])

    def test_reads_mbart_of_2020(self):
        theirs = self.folder / "mbart-2020"
        case = write_foreign("MBartForConditionalGeneration", theirs)
        tokenizer, generation = (dict(case["files"][name]) for name in ("tokenizer_config.json", "generation_config.json"))
        del tokenizer["tokenizer_class"], generation["forced_bos_token_id"]
        # The last ids: 52 languages with ro_RO as the 20th, the mask, and two without a token.
        generation["decoder_start_token_id"] = case["files"]["config.json"]["vocab_size"] - 55 + 19
        write_files(theirs, {"tokenizer_config.json": tokenizer, "generation_config.json": generation})
        self.succeed("import", "mbart-2020", "--out", "mbart")
        plain = self.succeed("predict", "mbart", "--json", stdin=TEXT + "\n").stdout
        self.assertEqual(self.succeed("predict", "mbart", "--json", "--to", "ro_RO", stdin=TEXT + "\n").stdout, plain)
        self.refuse("predict", "mbart", "--to", "cs_CZ", stdin=TEXT + "\n", names=["answers only in ro_RO", "'cs_CZ'"])
        self.refuse("explain", "mbart", TEXT, "--to", "cs_CZ", names=["answers only in ro_RO"])


if __name__ == "__main__":
    program.main()
