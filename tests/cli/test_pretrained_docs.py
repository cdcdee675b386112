"""Runs the commands of docs/pretrained.md unchanged and in order, on small folders with these names."""

import base64
import importlib.util
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import program
from foreign import golden_case, write_foreign
from test_serving_docs import indented_blocks

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/pretrained.md"
# Folders that commands import, and ready models.
FOREIGN = {"all-MiniLM-L6-v2": "BertModel", "vit-base-patch16-224": "ViTForImageClassification",
           "opus-mt-en-roa": "MarianMTModel", "esm2_t6_8M_UR50D": "EsmForMaskedLM",
           "ms-marco-MiniLM-L-6-v2": "RobertaForSequenceClassification",
           "roberta-base-squad2": "RobertaForQuestionAnswering",
           "nllb-200-distilled-600M": "M2M100ForConditionalGeneration",
           "flan-t5-small": "T5ForConditionalGeneration", "electra-small-discriminator": "ElectraForPreTraining",
           "albert-base-v2": "AlbertForMaskedLM", "all-mpnet-base-v2": "MPNetModel",
           "deberta-v3-small": "DebertaV2ForMaskedLM"}
IMPORTED = {"bert": "BertForMaskedLM", "gpt2": "GPT2LMHeadModel",
            "reviews": "DistilBertForSequenceClassification"}
TEXTS = ["the cat sat on the mat", "a dog ran", "Paris is the capital", "of France", "hello world", "a mat"]


class PretrainedDocs(program.Case):
    def import_as(self, name):
        write_foreign(IMPORTED[name], self.folder / "theirs")
        self.succeed("import", "theirs", "--out", name)
        shutil.rmtree(self.folder / "theirs")

    def write_data(self):
        self.write("sentences.txt", "\n".join(TEXTS) + "\n")
        self.write("text.txt", "\n".join(TEXTS) + "\n")
        self.write("reviews.tsv", "".join(f"{text} {number}\t{number % 2}\n" for number, text in enumerate(TEXTS * 50)))
        self.write("pairs.tsv", "".join(f"{text} {number}\t{text}\n" for number, text in enumerate(TEXTS * 20)))
        proteins = golden_case("EsmForMaskedLM")["texts"]
        self.write("proteins.txt", "\n".join(proteins) + "\n")
        residues = "ACDEFGHIKLMNPQRSTVWY"
        self.write("folds.tsv", "".join(f"{protein}{residues[number % 20]}{residues[number // 20]}\t{number % 2}\n"
                                        for number, protein in enumerate(proteins * 100)))
        self.write("judged.tsv", "".join(f"{text} {number}\t{text}\t{number % 2}\n"
                                         for number, text in enumerate(TEXTS * 20)))
        self.write("questions.tsv", "".join(f"what {number}?\t{text}\t{text.split()[number % 2]}\n"
                                            for number, text in enumerate(TEXTS * 20)))
        image = golden_case("ViTForImageClassification")["texts"][0]
        self.write("cat.png", base64.b64decode(image.partition(",")[2]))

    def shell(self, command):
        environment = {**program.environment(), "ATTEND_TRAIN_STEPS": "2"}
        environment["PATH"] = f"{pathlib.Path(program.PROGRAM).parent}:{environment['PATH']}"
        return subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, capture_output=True,
                              text=True)

    def has_package(self, command):
        """Returns whether pip can download the package; gives up without a connection."""
        try:
            return subprocess.run(shlex.split(command), cwd=self.folder, capture_output=True,
                                  timeout=60).returncode == 0
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return False

    def prepare(self, arguments):
        """Provides the foreign folder that a command reads, and removes an old output folder."""
        if arguments[:2] == ["attend", "import"] and not (self.folder / arguments[2]).exists():
            self.assertIn(arguments[2], FOREIGN, "tell test_pretrained_docs.py what this folder is")
            write_foreign(FOREIGN[arguments[2]], self.folder / arguments[2])
        if arguments[:2] == ["attend", "train"]:
            shutil.rmtree(self.folder / arguments[arguments.index("--out") + 1], ignore_errors=True)

    def test_every_command_runs(self):
        self.write_data()
        for name in IMPORTED:
            self.import_as(name)
        ran = 0
        for block in indented_blocks(PAGE):
            for command in block.replace("\\\n", " ").splitlines():
                if command.startswith("python3") and importlib.util.find_spec("transformers") is None:
                    print("\nSKIPPED: transformers is not installed, which is to read a folder of ours",
                          file=sys.stderr, flush=True)
                    continue
                with self.subTest(command=command):
                    if command.startswith("pip "):
                        fetch, _, command = command.partition(" && ")
                        if not self.has_package(fetch):
                            print(f"\nSKIPPED: a package cannot be had: {fetch}", file=sys.stderr, flush=True)
                            break
                    self.prepare(shlex.split(command))
                    done = self.shell(command)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    ran += command.startswith("attend ")
        self.assertGreaterEqual(ran, 10)
        page = (self.folder / "paris.html").read_text(encoding="utf-8")
        self.assertTrue(re.search(r"rollout", page))


if __name__ == "__main__":
    program.main()
