#!/usr/bin/env python3
"""Repeats the table of "Attention is not Explanation" (Jain & Wallace 2019) for binary SST.

    tools/jain_wallace.py ../shared/data build/jain_wallace [--attend build/release/attend] [--seeds 5]

The models are a bidirectional LSTM with an additive or a dot score (divided by 16, the root of its depth) and the
average of words with the additive score. As published, sentences have more than 5 words and no punctuation, and
training takes 128 units per direction, Adam at 1e-3, batches of 32, 8 epochs and the best epoch in validation. Word
vectors are random; theirs are fastText's. Prints Kendall's tau of the weights with the gradient (weights held) and with
leaving each word out, over all test sentences, next to the published values. The data is `sst-sentence`
(tools/sentences_data.py).
"""

import argparse
import json
import pathlib
import statistics
import subprocess

from sentences_data import sentence_file, write

MODELS = {
    "BiLSTM, additive": ["model.recurrent_layers=1", "model.pooling=fixed_mlp"],
    "BiLSTM, dot": ["model.recurrent_layers=1", "model.pooling=fixed_dot",
                    "model.pooling_normaliser=temperature:16"],
    "average, additive": ["model.recurrent_layers=0", "model.pooling=fixed_mlp"],
}
SETTINGS = [
    "model.type=classifier", "data.source_units=space", "data.target_units=line", "data.lowercase=true",
    "model.cell=lstm", "model.depth=256", "model.attention_depth=128", "model.word_dropout=0",
    "model.output_dropout=0", "model.dropout=0", "train.learning_rate=1e-3", "train.schedule=constant",
    "train.warmup_steps=0", "train.batch=32", "train.epochs=8", "train.label_smoothing=0",
    "train.weight_average=0", "train.weight_decay=1e-5", "train.patience=0", "train.metric=accuracy",
    "train.replicas=1",
]
# Method and figure: published values in the order of MODELS, None if not published.
FIGURES = {
    ("attention", "tau_gradient"): (0.351, 0.073, 0.606),
    ("attention", "tau_occlusion"): (0.291, 0.064, 0.623),
    ("held_gradient", "tau_occlusion"): (0.656, None, None),
}


def words_alone(rows):
    """Sentences of more than 5 words, without punctuation."""
    for text, label in rows:
        words = [word for word in text.split() if any(c.isalnum() for c in word)]
        if len(words) > 5:
            yield " ".join(words), label


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def measure(attend, data, folder, settings, seed):
    if not (folder / "weights.safetensors").exists():
        run(attend, "train", "--data", data, "--out", folder, "--set", f"train.seed={seed}",
            *(part for setting in SETTINGS + settings for part in ("--set", setting)))
    accuracy = json.loads(run(attend, "evaluate", folder, "--data", data / "test.tsv", "--json"))
    tested = json.loads(run(attend, "faithfulness", folder, "--data", data / "test.tsv", "--json",
                            "--examples", 0, "--method", "attention,held_gradient",
                            "--figure", "tau_gradient,tau_occlusion"))
    figures = {key: tested["methods"][key[0]][key[1]]["mean"] for key in FIGURES}
    return accuracy["accuracy"], figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--attend", type=pathlib.Path, default="build/release/attend")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    data = arguments.folder / "data"
    for part, name in (("train", "train"), ("dev", "valid"), ("test", "test")):
        rows = sentence_file(arguments.source / "sst-sentence" / f"stsa.binary.{part}.gz")
        write(data / f"{name}.tsv", list(words_alone(rows)))
    print(f"{'':<20} {'accuracy':>9}  " + "".join(f"{f'{m}: {f}':<40}" for m, f in FIGURES))
    for place, (name, settings) in enumerate(MODELS.items()):
        runs = []
        for seed in range(1, arguments.seeds + 1):
            folder = arguments.folder / f"{name.replace(', ', '_')}_{seed}"
            runs.append(measure(arguments.attend, data, folder, settings, seed))
        line = f"{name:<20} {statistics.mean(rate for rate, _ in runs):>9.3f}  "
        for key, published in FIGURES.items():
            taus = [figures[key] for _, figures in runs]
            theirs = "-" if published[place] is None else f"{published[place]:.3f}"
            shown = f"{statistics.mean(taus):.3f} ({min(taus):.3f} to {max(taus):.3f}), theirs {theirs}"
            line += f"{shown:<40}"
        print(line.rstrip(), flush=True)


if __name__ == "__main__":
    main()
