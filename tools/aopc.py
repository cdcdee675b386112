#!/usr/bin/env python3
"""Measures how well explanations find the words that matter (AOPC on SST-2), next to published figures.

    tools/aopc.py [--data ../shared/data] [--out build/aopc] [--examples 200] [--method NAMES]

Trains the recipe sst2_transformer unless --out has a model, and prints a Markdown table with two means per method.
Words with the largest scores are removed (1, 5, 10, 20 and 50 %), or only these words are kept. Both means are over the
probability that the answer loses. The published figures are AOPC of a BERT fine-tuned on SST-2 (Modarressi et al.
2023).
"""

import argparse
import json
import pathlib

import sentences
import sentences_data

PUBLISHED = {"decompx": 0.627, "alti": 0.416, "integrated_gradients": 0.340}
METHODS = ["decompx", "alti", "relevance", "value_zeroing", "integrated_gradients", "gradient_x_input", "rollout",
           "occlusion"]


def cells(figure):
    return f"{figure['mean']:.3f} ({figure['low']:.3f}, {figure['high']:.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default="../shared/data")
    parser.add_argument("--out", type=pathlib.Path, default="build/aopc")
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--method", default=",".join(METHODS), help="names, separated by commas")
    options = parser.parse_args()
    data, model = options.out / "sst2", options.out / "model"
    sentences_data.sst2(options.data / "sst-sentence", options.data / "sst2-glue", data)
    if not (model / "config.toml").exists():
        sentences.attend("train", "--recipe", "sst2_transformer", "--data", data, "--out", model)
    accuracy = json.loads(sentences.attend("evaluate", model, "--data", data, "--json"))["accuracy"]
    measured = json.loads(sentences.attend(
        "faithfulness", model, "--data", data / "test.tsv", "--method", options.method, "--figure",
        "comprehensiveness,sufficiency", "--examples", options.examples, "--json"))
    print(f"Accuracy {100 * accuracy:.1f} %; {measured['examples']} sentences; in parentheses 95 %.\n\n"
          "| method | lost without | published | lost with only these |\n|---|---|---|---|")
    methods = measured["methods"]
    for name in sorted(methods, key=lambda name: -methods[name]["comprehensiveness"]["mean"]):
        figures = methods[name]
        print(f"| `{name}` | {cells(figures['comprehensiveness'])} | {f'{PUBLISHED[name]:.3f}' if name in PUBLISHED else ''} | "
              f"{cells(figures['sufficiency'])} |")
    print(f"| a random order | {figures['comprehensiveness']['compared_with']:.3f} | | "
          f"{figures['sufficiency']['compared_with']:.3f} |")


if __name__ == "__main__":
    main()
