#!/usr/bin/env python3
"""Compares `attend compute` with the reference implementation of ONNX's Attention, opsets 23 to 25.

A row of `./dev conform`. Cases are drawn in float64 and float32:

- shapes: odd lengths, grouped heads, values of another depth;
- masks: booleans, numbers, causal, windows, lengths of padded batches;
- caches before the queries, soft caps and scales.

Compares contexts, and weights (the fourth output in mode 3), with a tolerance per dtype. The reference multiplies
queries and keys by the square root of the scale in float32 for every dtype. So scales have exact square roots.
--record tests/conform/attention.json writes the reference's answers for tests/cli/test_conform.py.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from conform_report import Report, arguments

CASES = 120
RECORDED = 16
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}
INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")


def draw_case(draw):
    """Arrays, attributes and opset of one call of Attention."""
    pick = lambda *values: values[draw.integers(len(values))]
    opset = int(pick(23, 24, 25))
    batch, groups, per_group = pick(1, 2, 3), pick(1, 2), pick(1, 2, 4)
    queries, keys, past = pick(1, 3, 7, 59), pick(1, 3, 8, 61), pick(0, 0, 5)
    depth, values = pick(1, 3, 8, 16), pick(1, 4, 8)
    dtype = pick("float64", "float32")
    new = lambda *shape: draw.normal(size=shape).astype(dtype)
    case = {"Q": new(batch, groups * per_group, queries, depth), "K": new(batch, groups, keys, depth),
            "V": new(batch, groups, keys, values)}
    if past:
        case["past_key"], case["past_value"] = new(batch, groups, past, depth), new(batch, groups, past, values)
    elif opset >= 24 and pick(True, False):
        case["nonpad_kv_seqlen"] = draw.integers(0, keys + 1, size=batch).astype("int64")
    shape = (pick(1, batch), pick(1, groups * per_group), queries, keys + past)
    mask = pick("none", "none", "boolean", "number")
    if mask == "boolean":
        case["attn_mask"] = draw.random(shape) < 0.7
    elif mask == "number":
        case["attn_mask"] = new(*shape)
    attributes = {"is_causal": int(pick(0, 1)), "softcap": pick(0.0, 0.0, 2.0), "qk_matmul_output_mode": 3}
    if pick(True, False):
        attributes["scale"] = float(pick(0.25, 1.0, 2.25))
    if opset >= 25 and pick(True, False):
        attributes["left_window_size"], attributes["right_window_size"] = int(pick(-1, 0, 2)), int(pick(-1, 0, 3))
    return case, attributes, opset


def theirs(case, attributes, opset):
    """Context and weights of the reference."""
    kinds = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT, "int64": TensorProto.INT64,
             "bool": TensorProto.BOOL}
    kind = kinds[case["Q"].dtype.name]
    caches = "past_key" in case
    outputs = ["Y", "present_key" if caches else "", "present_value" if caches else "", "weights"]
    node = helper.make_node("Attention", [name if name in case else "" for name in INPUTS], outputs, **attributes)
    graph = helper.make_graph(
        [node], "attention",
        [helper.make_tensor_value_info(name, kinds[array.dtype.name], array.shape) for name, array in case.items()],
        [helper.make_tensor_value_info(name, kind, None) for name in ("Y", "weights")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, case)


def our_call(case, attributes):
    """Arrays by the option of `attend compute` that takes them, and the other options."""
    past = case["past_key"].shape[2] if "past_key" in case else 0
    query, key, value = (case[name].copy() for name in "QKV")
    if past:
        key, value = (numpy.concatenate((case[p], a), axis=2) for p, a in (("past_key", key), ("past_value", value)))
    if "scale" in attributes:
        query *= attributes["scale"] * query.shape[-1] ** 0.5
    arrays, choices = {"--query": query, "--key": key, "--value": value}, ["--weights"]
    offsets = numpy.full(query.shape[0], past, "int64")
    if "nonpad_kv_seqlen" in case:
        arrays["--key-lengths"] = case["nonpad_kv_seqlen"]
        offsets = case["nonpad_kv_seqlen"] - query.shape[2]
    arrays["--query-offsets"] = offsets
    if "attn_mask" in case:
        is_mask = case["attn_mask"].dtype == bool
        arrays["--mask" if is_mask else "--param"] = case["attn_mask"]
        choices += [] if is_mask else ["--bias", "dense"]
    if attributes["is_causal"]:
        choices += ["--scope", "causal"]
    left, right = (attributes.get(f"{side}_window_size", -1) for side in ("left", "right"))
    if left >= 0 or right >= 0:
        far = query.shape[2] + key.shape[2]
        choices += ["--scope", f"window:{left if left >= 0 else far},{right if right >= 0 else far}"]
    if attributes["softcap"]:
        choices += ["--soft-cap", str(attributes["softcap"])]
    return arrays, choices


def ours(program, arrays, choices):
    """Context and weights of `attend compute`."""
    with tempfile.TemporaryDirectory() as folder:
        folder, command = pathlib.Path(folder), [program, "compute", *choices]
        for option, array in arrays.items():
            path = folder / f"{option[2:]}.npy"
            numpy.save(path, numpy.ascontiguousarray(array))
            command += [option, f"dense_bias={path}" if option == "--param" else str(path)]
        out = folder / "out.npz"
        run = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(run.stderr.strip())
        with numpy.load(out) as arrays:
            return arrays["context"], arrays["weights"]


def described(case, attributes, opset):
    given = ", ".join(f"{name} {list(array.shape)}" for name, array in case.items() if name not in "QV")
    chosen = {name: value for name, value in attributes.items() if name != "qk_matmul_output_mode"}
    return f"opset {opset} {case['Q'].dtype.name} Q {list(case['Q'].shape)}, {given}, {json.dumps(chosen)}"


def recorded(array):
    """An array with its dtype, in the form of tests/cli/arrays.py."""
    return {"shape": list(array.shape), "values": array.astype(int).ravel().tolist() if array.dtype == bool else
            array.ravel().tolist(), "descr": array.dtype.str if array.dtype != bool else "|b1"}


def record(path, draw):
    """Writes a few small cases with the reference's answers, for tests/cli/test_conform.py."""
    cases = []
    while len(cases) < RECORDED:
        case, attributes, opset = draw_case(draw)
        if case["Q"].size > 100 or case["K"].size > 100 or case["Q"].shape[2] * case["K"].shape[2] > 60:
            continue
        arrays, choices = our_call(case, attributes)
        context, weights = theirs(case, attributes, opset)
        cases.append({"name": described(case, attributes, opset), "choices": choices,
                      "arrays": {option: recorded(array) for option, array in arrays.items()},
                      "tolerance": TOLERANCE[case["Q"].dtype.name],
                      "context": context.ravel().tolist(), "weights": weights.ravel().tolist()})
    path.write_text(json.dumps({"peer": f"onnx {onnx.__version__}", "cases": cases}) + "\n", encoding="utf-8")


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE", help="write recorded cases and end")
    options = parser.parse_args()
    draw = numpy.random.default_rng(options.seed)
    if options.record:
        record(options.record, draw)
        return 0
    report = Report()
    for _ in range(CASES):
        case, attributes, opset = draw_case(draw)
        name = described(case, attributes, opset)
        context, weights = theirs(case, attributes, opset)
        try:
            our_context, our_weights = ours(options.program, *our_call(case, attributes))
        except RuntimeError as error:
            report.state(name, False, str(error))
            continue
        report.compare(name, [our_context.tolist(), our_weights.tolist()], [context.tolist(), weights.tolist()],
                       TOLERANCE[case["Q"].dtype.name])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
