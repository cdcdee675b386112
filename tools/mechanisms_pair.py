#!/usr/bin/env python3
"""Makes docs/mechanisms/pair.json, the sentence pair for the weights in docs/mechanisms.md.

    mechanisms_pair.py data FILE.tsv.xz... FOLDER   # English TAB German, Debian's descriptions
    attend train --data FOLDER --out MODEL --source-units space --set data.minimum_count=3 \\
      --set model.hidden=48 --set model.embedding=48 --set model.attention_depth=48 \\
      --set model.dropout=0.2 --set train.replicas=1 --set train.batch=32 --set train.epochs=25 \\
      --set train.patience=0 --set train.learning_rate=3e-3 --set train.warmup_steps=200 \\
      --set train.weight_average=0.999 --set train.label_smoothing=0   # 9 minutes
    mechanisms_pair.py states MODEL > docs/mechanisms/pair.json
    attend mechanisms --pictures docs/mechanisms

The files have the synopses and paragraphs of Debian's package descriptions with German translations
(Translation-en and Translation-de of the archive, joined on Description-md5). `states` runs the
trained model on the pair. It prints the annotation of each source word and the decoder's state before
each target word, which is the query. Needs NumPy.
"""

import json
import lzma
import pathlib
import re
import struct
import sys

SOURCE = "lightweight and flexible command-line json processor - shared library"
TARGET = ("leichtgewichtiger und flexibler json-prozessor für die kommandozeile - "
          "laufzeitbibliothek")
LONGEST = 10
START = 1  # id of the start token


def words(text):
    return " ".join(re.findall(r"[^\W_]+(?:-[^\W_]+)*|[^\w\s]", text.lower()))


def sentences(line):
    """The pairs of a line: sentence by sentence if both sides have the same number, else the whole line."""
    sides = [re.split(r"(?<=[.!?]) +", side) for side in line.split("\t")[:2]]
    if len(sides[0]) != len(sides[1]):
        sides = [[side] for side in line.split("\t")[:2]]
    return zip(*([words(sentence) for sentence in side] for side in sides))


def write_data(paths, folder):
    """Writes train.tsv and valid.tsv: short pairs without duplicates, in lower case, with separate punctuation."""
    pairs = []
    for path in paths:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                pairs += sentences(line)
    pairs = [pair for pair in dict.fromkeys(pairs)
             if all(3 <= len(side.split()) <= LONGEST for side in pair)]
    if (SOURCE, TARGET) not in pairs:
        sys.exit(f"{SOURCE!r} is in none of the files; other descriptions of Debian hold it")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, wanted in (("train", False), ("valid", True)):
        lines = [f"{source}\t{target}\n" for i, (source, target) in enumerate(pairs)
                 if (i % 40 == 0 and source != SOURCE) == wanted]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def read_weights(path):
    import numpy

    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length:]
    return {name: numpy.frombuffer(body[slice(*entry["data_offsets"])], "<f4")
            .reshape(entry["shape"]).astype("f8") for name, entry in header.items()}


def gru_step(x, state, weights, suffix):
    """The GRU of Cho et al. 2014 in LibTorch's order of the gates: reset, update, candidate."""
    import numpy

    read = weights["weight_ih" + suffix] @ x + weights["bias_ih" + suffix]
    kept = weights["weight_hh" + suffix] @ state + weights["bias_hh" + suffix]
    depth = len(state)
    reset, update = (1 / (1 + numpy.exp(-(read + kept)[i * depth:(i + 1) * depth]))
                     for i in (0, 1))
    candidate = numpy.tanh(read[2 * depth:] + reset * kept[2 * depth:])
    return (1 - update) * candidate + update * state


def states(model):
    """Annotations [source words, hidden] and decoder states [target words, hidden] of the pair."""
    import numpy

    model = pathlib.Path(model)
    weights = read_weights(model / "weights.safetensors")
    part = lambda prefix: {name[len(prefix):]: value for name, value in weights.items()
                           if name.startswith(prefix)}
    ids = {side: {token: i for i, token in enumerate(
        (model / f"{side}.vocab").read_text(encoding="utf-8").splitlines())}
        for side in ("source", "target")}
    embedded = [weights["source_embedding.weight"][ids["source"][word]] for word in SOURCE.split()]
    encoder = part("encoder.layer0.")
    depth = len(encoder["weight_hh_l0"][0])
    directions = []
    for order, suffix in ((1, "_l0"), (-1, "_l0_reverse")):
        state, along = numpy.zeros(depth), []
        for x in embedded[::order]:
            state = gru_step(x, state, encoder, suffix)
            along.append(state)
        directions.append(along[::order])
    annotations = numpy.concatenate([numpy.array(one) for one in directions], 1)

    state = numpy.tanh(weights["initial.weight"] @ annotations[0][depth:] + weights["initial.bias"])
    before, decoder, network = [], part("decoder.gru."), part("attention.")
    for previous in [START] + [ids["target"][word] for word in TARGET.split()][:-1]:
        before.append(state)
        hidden = numpy.tanh(network["W_q"] @ state + annotations @ network["W_k"].T + network["b"])
        scores = numpy.exp(hidden @ network["v"])
        context = scores / scores.sum() @ annotations
        x = numpy.concatenate([weights["target_embedding.weight"][previous], context])
        state = gru_step(x, state, decoder, "")
    return annotations, numpy.array(before), network


def write_states(model):
    import numpy

    annotations, before, network = states(model)
    hidden = numpy.tanh((before @ network["W_q"].T)[:, None] + annotations @ network["W_k"].T
                        + network["b"])
    scores = numpy.exp(hidden @ network["v"])
    rounded = lambda rows: [[round(float(x), 4) for x in row] for row in rows]
    pair = {"source": SOURCE.split(), "target": TARGET.split(),
            "annotations": rounded(annotations), "states": rounded(before),
            "weights": rounded(scores / scores.sum(1, keepdims=True))}
    lines = []
    for name, value in pair.items():
        if isinstance(value[0], str):
            lines.append(f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
        else:
            rows = ",\n  ".join(json.dumps(row) for row in value)
            lines.append(f" {json.dumps(name)}: [\n  {rows}]")
    print("{\n" + ",\n".join(lines) + "\n}")


def main():
    arguments = sys.argv[1:]
    if len(arguments) >= 3 and arguments[0] == "data":
        write_data(arguments[1:-1], arguments[-1])
    elif len(arguments) == 2 and arguments[0] == "states":
        write_states(arguments[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
