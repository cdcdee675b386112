"""Trains a Transformer and a recurrent model by PyTorch's own layers, and by Attend on the same batches.

    python tools/peers_train.py BUILD [--seconds 8] [--turns 3]

BUILD is a folder with train_bench; tools/peers.py runs this script. Both sides use two threads and take turns. Prints a
JSON object per row: medians of tokens per second and of the turns' ratios.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn

THREADS = 2
SMOOTHING = 0.1
DROPOUT = 0.1
DEPTH, HEADS, LAYERS, FEED_FORWARD = 128, 4, 4, 256  # as in train_bench
HIDDEN = 256


class Transformer(nn.Module):
    def __init__(self, sources, targets):
        super().__init__()
        self.source, self.target = nn.Embedding(sources, DEPTH), nn.Embedding(targets, DEPTH)
        self.transformer = nn.Transformer(DEPTH, HEADS, LAYERS, LAYERS, FEED_FORWARD, DROPOUT,
                                          batch_first=True)
        self.output = nn.Linear(DEPTH, targets)

    def embedded(self, embedding, tokens):
        rates = torch.exp(torch.arange(0, DEPTH, 2) * (-math.log(10000) / DEPTH))
        angles = torch.arange(tokens.shape[1])[:, None] * rates
        positions = torch.stack((angles.sin(), angles.cos()), 2).flatten(1)
        return F.dropout(embedding(tokens) * math.sqrt(DEPTH) + positions, DROPOUT, self.training)

    def forward(self, source, before, source_padding, target_padding):
        length = before.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        return self.output(self.transformer(
            self.embedded(self.source, source), self.embedded(self.target, before), tgt_mask=causal,
            src_key_padding_mask=source_padding, tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding, tgt_is_causal=True))


class Recurrent(nn.Module):
    """A bidirectional GRU, a GRU cell with additive attention (Bahdanau et al. 2015) and a maxout readout."""

    def __init__(self, sources, targets):
        super().__init__()
        self.source, self.target = nn.Embedding(sources, DEPTH), nn.Embedding(targets, DEPTH)
        self.encoder = nn.GRU(DEPTH, HIDDEN // 2, bidirectional=True, batch_first=True)
        self.decoder = nn.GRUCell(DEPTH + HIDDEN, HIDDEN)
        self.initial, self.query, self.key = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.score = nn.Linear(HIDDEN, 1)
        self.readout = nn.Linear(2 * HIDDEN + DEPTH, 2 * HIDDEN)
        self.output = nn.Linear(HIDDEN, targets)

    def embedded(self, embedding, tokens):
        return F.dropout(embedding(tokens), DROPOUT, self.training)

    def forward(self, source, before, source_padding, _):
        annotations = self.encoder(self.embedded(self.source, source))[0]
        keys = self.key(annotations)
        state = torch.tanh(self.initial(annotations.mean(1)))
        steps = []
        for token in self.embedded(self.target, before).unbind(1):
            scores = self.score(torch.tanh(self.query(state).unsqueeze(1) + keys)).squeeze(2)
            weights = scores.masked_fill(source_padding, -math.inf).softmax(1)
            context = torch.bmm(weights.unsqueeze(1).to(annotations.dtype), annotations).squeeze(1)
            state = self.decoder(torch.cat((token, context), 1), state)
            steps.append(torch.cat((state, context, token), 1))
        maxout = self.readout(torch.stack(steps, 1)).unflatten(2, (HIDDEN, 2)).amax(3)
        return self.output(F.dropout(maxout, DROPOUT, self.training))


class Training:
    """A model with its optimiser; each call of rate() continues the training."""

    def __init__(self, make, data, dtype):
        torch.manual_seed(1)
        self.model = make(data["source_tokens"], data["target_tokens"])
        self.adam = torch.optim.Adam(self.model.parameters(), 1e-3, fused=True)
        self.data, self.dtype = data, dtype
        self.batches = [[torch.tensor(batch[side]) for side in ("source", "target")]
                        for batch in data["batches"]]
        self.next = 0

    def step(self):
        source, target = self.batches[self.next % len(self.batches)]
        self.next += 1
        padding, bos = self.data["padding"], self.data["bos"]
        before = torch.cat((torch.full_like(target[:, :1], bos), target[:, :-1]), 1)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.dtype == "bfloat16"):
            logits = self.model(source, before, source == padding, target == padding)
        loss = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), ignore_index=padding,
                               label_smoothing=SMOOTHING)
        self.adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1)
        self.adam.step()
        ends = len(target)  # not counted by train_bench
        return (source != padding).sum().item() + (target != padding).sum().item() - ends

    def rate(self, seconds):
        done, begin = 0, time.monotonic()
        while time.monotonic() - begin < seconds:
            done += self.step()
        return done / (time.monotonic() - begin)


def attend_rates(build, task, seconds):
    """Tokens per second by precision."""
    command = [build / "train_bench", "--only", task, "--turns", "1", "--seconds", str(seconds), "--json"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    return {precision: figure["value"] for figure in json.loads(printed) for precision in ("float32", "bfloat16")
            if figure["metric"] == "tokens/s" and figure["case"].endswith(precision)}


def compare(options, task, make, folder):
    data = json.loads((folder / f"{task}.json").read_text())
    trainings = {dtype: Training(make, data, dtype) for dtype in ("float32", "bfloat16")}
    for training in trainings.values():
        training.step()
    turns = [(attend_rates(options.build, task, options.seconds),
              {dtype: training.rate(options.seconds) for dtype, training in trainings.items()})
             for _ in range(options.turns)]
    for dtype in turns[0][0]:
        ours, theirs = ([turn[side][dtype] for turn in turns] for side in (0, 1))
        print(json.dumps({"work": f"training, {task}, {dtype}, two threads", "peer": "PyTorch eager",
                          "unit": "tokens/s", "ours": statistics.median(ours),
                          "theirs": statistics.median(theirs),
                          "ratio": statistics.median(a / b for a, b in zip(ours, theirs))}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=8, help="seconds per turn")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([options.build / "train_bench", "--batches", name], check=True)
        for task, make in (("Transformer", Transformer), ("recurrent", Recurrent)):
            compare(options, task, make, pathlib.Path(name))


if __name__ == "__main__":
    main()
