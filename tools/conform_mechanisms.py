#!/usr/bin/env python3
"""Compares mechanisms of `attend compute` with the code of their authors or maintainers.

A row of `./dev conform`. Draws lengths, depths, heads and parameters. Contexts and gradients must agree within the
precision of float32, relative to the largest number:

- forget (FoX) with the loops of flash-linear-attention, with and without a window. They are read from their file, since
  the package itself imports Triton.
- selective attention with the function in x-transformers, also read from its file.
- entmax with a fixed and a trained alpha per head, with the bisection of the package entmax.
"""

import importlib.util
import math
import pathlib
import subprocess
import sys
import tempfile

import entmax
import numpy
import torch

from conform_report import Report, arguments

TOLERANCE = 3e-5
CASES = 12


def file_of(package, *path):
    """A module of a package, without the package around it."""
    folder = pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location(f"peer_{package}", folder.joinpath(*path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look it up
    spec.loader.exec_module(module)
    return module


def drawn(draw, same_lengths):
    """Queries, keys and values [batch, heads, tokens, depth]."""
    batch, heads, queries, depth, values = (int(draw.integers(1, most)) for most in (3, 5, 70, 33, 33))
    keys = queries if same_lengths else int(draw.integers(1, 70))
    sizes = {"query": (queries, depth), "key": (keys, depth), "value": (keys, values)}
    if same_lengths:
        sizes["value"] = (keys, depth)  # the loops take one depth
    return {name: torch.tensor(draw.standard_normal((batch, heads, *size)), dtype=torch.float32)
            for name, size in sizes.items()}


def forget(draw, case):
    """Inputs, parameters, choices of `attend compute`, and the peer's function."""
    x = drawn(draw, same_lengths=True)
    batch, heads, tokens, _ = x["query"].shape
    parameters = {"forget_gates": torch.tensor(draw.normal(2, 2, (batch, heads, tokens)), dtype=torch.float32)}
    window = int(draw.integers(1, tokens + 1)) if case % 2 else None
    scope = "causal" if window is None else f"window:{window - 1},0"

    def theirs(query, key, value, forget_gates):
        turned = (tensor.transpose(1, 2) for tensor in (query, key, value))
        gates = torch.nn.functional.logsigmoid(forget_gates).transpose(1, 2)
        loops = file_of("fla", "ops", "forgetting_attn", "naive.py").naive_forgetting_attn
        return loops(*turned, gates, window_size=window).transpose(1, 2)

    return x, parameters, ["--bias", "forget", "--scope", scope], theirs


def selective(draw, _):
    x = drawn(draw, same_lengths=True)

    def theirs(query, key, value):
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3])
        later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
        module = file_of("x_transformers", "attend.py")
        return module.selective_attn(scores.masked_fill(later, -torch.inf)).softmax(-1) @ value

    return x, {}, ["--mechanism", "selective"], theirs


def sparse(draw, case):
    x = drawn(draw, same_lengths=False)
    heads = x["query"].shape[1]
    trained = case % 2 == 1
    alpha = torch.tensor(draw.uniform(1.1, 1.9, heads if trained else 1), dtype=torch.float32)
    parameters = {"entmax_alpha": alpha} if trained else {}
    text = "entmax" if trained else f"entmax:{float(alpha[0]):.9g}"

    def theirs(query, key, value, entmax_alpha=alpha):
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3])
        weights = entmax.entmax_bisect(scores, entmax_alpha.view(1, -1, 1, 1), dim=-1, n_iter=60)
        return weights @ value

    return x, parameters, ["--normaliser", text], theirs


PEERS = {"forget": forget, "selective": selective, "entmax": sparse}


def attend(program, x, parameters, choices, grad, folder):
    command = [program, "compute", "--out", folder / "result.npz", *choices]
    for name, array in {**x, "grad": grad}.items():
        numpy.save(folder / f"{name}.npy", array.detach().numpy())
        command += [f"--{name}", folder / f"{name}.npy"]
    for name, array in parameters.items():
        numpy.save(folder / f"{name}.npy", array.detach().numpy())
        command += ["--param", f"{name}={folder / f'{name}.npy'}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    with numpy.load(folder / "result.npz") as results:
        return {name: results[name] for name in results.files}


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    report = Report()
    for number, (name, draws) in enumerate(PEERS.items()):
        draw = numpy.random.default_rng(options.seed + number)
        for case in range(CASES):
            x, parameters, choices, theirs = draws(draw, case)
            given = {key: tensor.requires_grad_() for key, tensor in {**x, **parameters}.items()}
            wanted = theirs(**given)
            grad = torch.tensor(draw.standard_normal(wanted.shape), dtype=torch.float32)
            wanted.backward(grad)
            label = f"{name} {' '.join(choices)} {list(x['query'].shape)}"
            with tempfile.TemporaryDirectory() as folder:
                try:
                    got = attend(options.program, x, parameters, choices, grad, pathlib.Path(folder))
                except RuntimeError as error:
                    report.state(label, False, str(error))
                    continue
            wanted = {"context": wanted.detach()} | {f"grad_{key}": tensor.grad for key, tensor in given.items()}
            for key, tensor in wanted.items():
                size = max(1.0, float(tensor.abs().max()))
                report.compare(f"{label} {key}", (got[key] / size).tolist(), (tensor / size).tolist(), TOLERANCE)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
