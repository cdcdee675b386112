#!/usr/bin/env python3
"""Compares `attend recurrence` with ONNX's reference of LinearAttention and the loops of flash-linear-attention.

A row of `./dev conform`. Draws lengths, depths, decays near 0 and near 1, strengths and past states. Outputs, last
states and, for the loops, the gradients of all inputs must agree within the precision of float32, relative to the
largest number. The loops are read from their files: the package itself imports Triton.
"""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from conform_report import Report, arguments

TOLERANCE = 3e-5
ONNX_RULES = {"linear": "linear", "mamba2": "gated", "gla": "gated", "delta": "delta", "gated_delta": "gated_delta",
              "kda": "gated_delta"}
CASES = 6


def naive(folder, file="naive.py"):
    """A module of the loops in flash-linear-attention."""
    fla = pathlib.Path(importlib.util.find_spec("fla").submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location(f"naive_{folder}", fla / "ops" / folder / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def turned(*tensors):
    return [t.transpose(1, 2) for t in tensors]


def by_linear(x):
    q, k, v = turned(x["query"], x["key"], x["value"])
    return naive("linear_attn").naive_recurrent_linear_attn(q, k, v, initial_state=x["initial"], normalize=False,
                                                            output_final_state=True)


def by_scalar_decay(x):
    q, k, v = turned(x["query"], x["key"], x["value"])
    decay = x["decay"]
    if decay.dim() == 1:
        decay = decay[None, :, None].expand(x["value"].shape[:3])
    if "strength" in x:
        v = v * x["strength"].transpose(1, 2)[..., None]
    return naive("simple_gla").naive_recurrent_simple_gla(q, k, v, decay.transpose(1, 2), initial_state=x["initial"],
                                                          output_final_state=True)


def by_gla(x):
    return naive("gla").naive_recurrent_gla(*turned(x["query"], x["key"], x["value"], x["decay"]),
                                            initial_state=x["initial"], output_final_state=True)


def by_rwkv6(x):
    module = naive("rwkv6", "recurrent_naive.py")
    output, state = module.naive_recurrent_rwkv6(x["query"], x["key"], x["value"], x["decay"], x["bonus"],
                                                 initial_state=x["initial"], output_final_state=True)
    return output.transpose(1, 2), state


def by_delta(x):
    output, state = naive("delta_rule").delta_rule_recurrence(x["query"], x["key"], x["value"], x["strength"],
                                                              initial_state=x["initial"])
    return output.transpose(1, 2), state


def by_gated_delta(x):
    return naive("gated_delta_rule").naive_recurrent_gated_delta_rule(
        *turned(x["query"], x["key"], x["value"], x["strength"], x["decay"]), initial_state=x["initial"],
        output_final_state=True)


def by_kda(x):
    q, k, v, g, b = turned(x["query"], x["key"], x["value"], x["decay"], x["strength"])
    return naive("kda").naive_recurrent_kda(q, k, v, g, b, initial_state=x["initial"], output_final_state=True)


LOOPS = {"linear": by_linear, "retention": by_scalar_decay, "mamba2": by_scalar_decay, "gla": by_gla,
         "rwkv6": by_rwkv6, "delta": by_delta, "gated_delta": by_gated_delta, "kda": by_kda}


def drawn(name, draw, case):
    batch, heads, tokens = (int(draw.integers(1, most)) for most in (3, 4, 90))
    depth, value_depth = (int(draw.integers(1, 40)) for _ in range(2))
    least = (-0.05, -3, -80)[case % 3]
    rows = (batch, heads, tokens)

    def normal(*shape):
        return torch.tensor(draw.standard_normal(shape), dtype=torch.float32)

    def uniform(*shape):
        return torch.tensor(draw.random(shape), dtype=torch.float32)

    x = {"query": normal(*rows, depth), "key": F.normalize(normal(*rows, depth), dim=-1),
         "value": normal(*rows, value_depth), "initial": normal(batch, heads, depth, value_depth)}
    decays = {"retention": (heads,), "mamba2": rows, "gated_delta": rows, "gla": (*rows, depth),
              "rwkv6": (*rows, depth), "kda": (*rows, depth)}
    if name == "rwkv6":
        x["bonus"] = normal(heads, depth)
    if name in decays:
        x["decay"] = least * uniform(*decays[name])
    if name in ("mamba2", "delta", "gated_delta", "kda"):
        x["strength"] = 2 * uniform(*rows)
    return x


def attend(program, name, x, grad, folder):
    command = [program, "recurrence", name, "--out", folder / "result.npz"]
    for key, value in {**x, "grad": grad}.items():
        numpy.save(folder / f"{key}.npy", value.detach().numpy())
        command += [f"--{key}", folder / f"{key}.npy"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip()}")
    with numpy.load(folder / "result.npz") as results:
        return {key: torch.tensor(results[key]) for key in results.files}


def by_onnx(name, x):
    batch, heads, tokens = x["value"].shape[:3]

    def packed(tensor):
        return tensor.transpose(1, 2).reshape(batch, tokens, -1).contiguous().numpy()

    value = x["value"] * x["strength"][..., None] if name == "mamba2" else x["value"]
    decay = x.get("decay")
    if decay is not None and decay.dim() == 3:
        decay = decay[..., None]
    beta = x["strength"][..., None] if "delta" in ONNX_RULES[name] else None
    inputs = {"q": packed(x["query"]), "k": packed(x["key"]), "v": packed(value), "past": x["initial"].numpy()}
    inputs |= {key: packed(t) for key, t in (("decay", decay), ("beta", beta)) if t is not None}
    names = [key if key in inputs else "" for key in ("q", "k", "v", "past", "decay", "beta")]
    while not names[-1]:
        names.pop()
    node = helper.make_node("LinearAttention", names, ["output", "present"], update_rule=ONNX_RULES[name],
                            q_num_heads=heads, kv_num_heads=heads)
    graph = helper.make_graph(
        [node], "recurrence",
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, array.shape) for key, array in inputs.items()],
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, None) for key in ("output", "present")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 27)], ir_version=12)
    output, state = ReferenceEvaluator(model).run(None, inputs)
    output = torch.from_numpy(output).view(batch, tokens, heads, -1).transpose(1, 2)
    return {"output": output, "state": torch.from_numpy(state)}


def compare(report, case, ours, theirs):
    for key, wanted in theirs.items():
        size = max(1e-6, wanted.abs().max().item()) if wanted.numel() else 1
        error = ((ours[key] - wanted).abs().max() / size).item() if wanted.numel() else 0
        report.state(f"{case}, {key}", error <= TOLERANCE, f"difference {error:.2g} of the largest")


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    program = pathlib.Path(options.program).resolve()
    report = Report()
    draw = numpy.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        for name, loop in LOOPS.items():
            for case in range(CASES):
                x = drawn(name, draw, case)
                upstream = torch.tensor(draw.standard_normal(x["value"].shape), dtype=torch.float32)
                for tensor in x.values():
                    tensor.requires_grad_()
                output, state = loop(x)
                output = output.transpose(1, 2)
                gradients = torch.autograd.grad(output, list(x.values()), upstream)
                ours = attend(program, name, x, upstream, folder)
                theirs = {"output": output.detach(), "state": state.detach()}
                theirs |= {f"grad_{key}": g for key, g in zip(x, gradients)}
                compare(report, f"{name} {case}, flash-linear-attention", ours, theirs)
                if name in ONNX_RULES:
                    with torch.no_grad():
                        compare(report, f"{name} {case}, ONNX", ours, by_onnx(name, x))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
