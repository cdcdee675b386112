"""Times the registered operator against PyTorch, PyTorch Geometric, KeOps and ONNX Runtime; tools/peers.py runs it.

    python tools/peers_attention.py OPERATORS [--seconds 2] [--only TEXT] [--errors]

Contexts and gradients of both sides are compared before timing. Then the sides take turns on one thread. Prints a JSON
object per row, with the medians of processor times and of the turns' ratios. With --errors it prints errors in place
of times, of the context and of the gradients of queries, keys, values and parameters. Errors are relative to float64,
by the root of the sum of squares.
"""

import argparse
import dataclasses
import json
import statistics
import time
import typing

import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper
from pykeops.torch import LazyTensor
from torch_geometric.nn import GATConv

LEAST_SECONDS = 0.02  # per measurement


@dataclasses.dataclass
class Work:
    name: str
    shape: tuple  # batch, heads, keys and depth of the values
    peer: str
    theirs: typing.Callable  # (queries, keys, values, parameters) -> context
    ours: typing.Callable
    queries: int = 0  # 0: equal to the keys
    parameters: tuple = ()  # shapes of further learned tensors
    dtype: torch.dtype = torch.float32
    backward: bool = True
    tolerance: float = 1e-4  # relative to the largest number
    tensors: tuple = ()  # shapes of all inputs, if they are not queries, keys and values


def attend(**choices):
    return lambda q, k, v: torch.ops.attend.attention(q, k, v, **choices)[0]


def attend_additive(q, k, v, w):
    return torch.ops.attend.attention(q, k, v, score="additive", parameters={"v": w})[0]


def attend_dense_bias(q, k, v, bias):
    return torch.ops.attend.attention(q, k, v, bias={"dense": bias})[0]


def torch_sdpa(**choices):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **choices)


def torch_cosine(q, k, v):
    return F.scaled_dot_product_attention(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, scale=1.0)


def torch_dense_bias(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def torch_additive(q, k, v, w):
    return (torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)) @ w).softmax(-1) @ v


def keops(scores, v):
    return scores.sumsoftmaxweight(LazyTensor(v[0, 0][None].contiguous()), dim=1)[None, None]


def keops_additive(q, k, v, w):
    x, y = LazyTensor(q[0, 0][:, None].contiguous()), LazyTensor(k[0, 0][None].contiguous())
    tanh = 1 - 2 / ((2 * (x + y)).exp() + 1)  # KeOps has no tanh
    return keops((tanh | LazyTensor(w[None, None].contiguous())), v)


def keops_squared_distance(q, k, v):
    x, y = LazyTensor(q[0, 0][:, None].contiguous()), LazyTensor(k[0, 0][None].contiguous())
    return keops(-((x - y) ** 2).sum(-1), v)


class OnnxAttention:
    """The Attention operator of ONNX (opset 23), forward only."""

    def __init__(self, shape):
        names = ("query", "key", "value")
        tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in (*names, "context")]
        graph = helper.make_graph([helper.make_node("Attention", names, ["context"])], "attention",
                                  tensors[:3], tensors[3:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        onnx.checker.check_model(model)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                    providers=["CPUExecutionProvider"])

    def __call__(self, q, k, v):
        inputs = {"query": q.numpy(), "key": k.numpy(), "value": v.numpy()}
        return torch.from_numpy(self.session.run(None, inputs)[0])


class GraphAttention:
    """A layer of graph attention (Velickovic et al. 2018) on a random graph, by PyTorch Geometric and by the operator.

    Inputs are features, their map and the two vectors of the score."""

    def __init__(self, nodes, degree, features, heads, depth):
        self.heads, self.depth = heads, depth
        generator = torch.Generator().manual_seed(2)
        # Distinct steps to the neighbours, so that no edge is duplicate.
        steps = torch.randperm(nodes, generator=generator)[:degree]
        self.keys = ((torch.arange(nodes)[:, None] + steps) % nodes).sort(1).values.flatten()
        self.offsets = torch.arange(nodes + 1) * degree
        self.edge_index = torch.stack([self.keys, torch.arange(nodes).repeat_interleave(degree)])
        self.layer = GATConv(features, depth, heads, add_self_loops=False, bias=False)
        self.tensors = ((nodes, features), (heads * depth, features), (1, heads, depth), (1, heads, depth))

    def theirs(self, x, weight, of_key, of_query):
        weights = {"lin.weight": weight, "att_src": of_key, "att_dst": of_query}
        return torch.func.functional_call(self.layer, weights, (x, self.edge_index))

    def ours(self, x, weight, of_key, of_query):
        values = (x @ weight.T).view(-1, self.heads, self.depth)
        key, query = ((values * vector).sum(-1).T[None, :, :, None] for vector in (of_key, of_query))
        context = torch.ops.attend.attention(
            query, key, values.transpose(0, 1)[None], score="additive_leaky_relu",
            parameters={"v": torch.ones(1)}, edge_offsets=self.offsets, edge_keys=self.keys)[0]
        return context[0].transpose(0, 1).flatten(1)


SHAPES = [("8 heads x 1,024, depth 64", (1, 8, 1024, 64), {}),
          ("8 heads x 1,024, depth 128", (1, 8, 1024, 128), {}),
          ("8 heads x 1,024, depth 64, causal", (1, 8, 1024, 64), {"causal": True}),
          ("1 head x 4,096, depth 64", (1, 1, 4096, 64), {}),
          ("4 heads x 2,048, depth 128", (1, 4, 2048, 128), {}),
          ("batch 64, 4 heads x 64, depth 64", (64, 4, 64, 64), {}),
          ("batch 8, 8 heads x 512, depth 64", (8, 8, 512, 64), {})]
BFLOAT16_LENGTHS = [512, 1024, 2048, 4096, 8192]


def dot_works(dtype, shapes):
    name = {torch.float32: "fp32", torch.bfloat16: "bf16"}[dtype]
    for text, shape, choices in shapes:
        causal = "causal" in choices
        yield Work(f"{name} SDPA, {text}", shape, "PyTorch", torch_sdpa(is_causal=causal),
                   attend(scope="causal" if causal else "all"), dtype=dtype,
                   tolerance=1e-4 if dtype == torch.float32 else 0.04)


def works():
    yield from dot_works(torch.float32, SHAPES)
    lengths = [(f"1 head x {n:,}, depth {d}", (1, 1, n, d), {}) for d in (64, 128) for n in BFLOAT16_LENGTHS]
    yield from dot_works(torch.bfloat16, SHAPES + lengths)
    decoding = (1, 8, 8192, 128)
    yield Work("decoding, 1 query, 8 heads, 8,192 keys, depth 128", decoding, "PyTorch", torch_sdpa(),
               attend(), queries=1, backward=False)
    shape = (1, 8, 1024, 64)
    yield Work("fp32, 8 heads x 1,024, depth 64", shape, "ONNX Runtime", OnnxAttention(shape), attend(),
               backward=False)
    yield Work("cosine, 4 heads x 1,024, depth 64", (1, 4, 1024, 64), "normalise + SDPA", torch_cosine,
               attend(score="cosine"))
    yield Work("dense bias with its gradient, 8 heads x 1,024, depth 64", shape, "PyTorch",
               torch_dense_bias, attend_dense_bias, parameters=((1, 8, 1024, 1024),))
    for peer, theirs in (("PyTorch eager", torch_additive), ("KeOps", keops_additive)):
        yield Work("additive, 1 head x 1,024, depth 128", (1, 1, 1024, 128), peer, theirs,
                   attend_additive, parameters=((128,),))
    graph = GraphAttention(nodes=20000, degree=16, features=64, heads=8, depth=8)
    yield Work("layer of graph attention, 20,000 nodes with 16 edges, 8 heads x 8", (), "PyTorch Geometric",
               graph.theirs, graph.ours, tensors=graph.tensors)
    yield Work("squared distance, 1 head x 4,096, depth 3", (1, 1, 4096, 3), "KeOps",
               keops_squared_distance, attend(score="squared_distance"))


def inputs(work):
    generator = torch.Generator().manual_seed(1)
    if work.tensors:
        return [torch.randn(shape, generator=generator) for shape in work.tensors]
    batch, heads, keys, depth = work.shape
    shapes = [(batch, heads, work.queries or keys, depth), work.shape, work.shape, *work.parameters]
    return [torch.randn(shape, generator=generator).to(work.dtype) for shape in shapes]


def both_passes(function, tensors):
    tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    context = function(*tensors)
    return context.detach(), *torch.autograd.grad(context, tensors, torch.ones_like(context))


def forward(function, tensors):
    with torch.no_grad():
        return (function(*tensors),)


def check(work, passes, tensors):
    for ours, theirs in zip(passes(work.ours, tensors), passes(work.theirs, tensors), strict=True):
        size = theirs.float().abs().max().item()
        difference = (ours.float() - theirs.float()).abs().max().item()
        if not difference <= work.tolerance * max(size, 1e-3):
            raise SystemExit(f"{work.name}, {work.peer}: differs by {difference:.3g} of {size:.3g}")


def relative_errors(work):
    tensors = inputs(work)
    exact = both_passes(work.theirs, [tensor.double() for tensor in tensors])
    sides = ((name, both_passes(side, tensors)) for name, side in (("ours", work.ours), ("theirs", work.theirs)))
    return {"work": work.name, "peer": work.peer} | {
        name: [f"{((got.double() - want).norm() / want.norm()).item():.2g}" for got, want in zip(side, exact)]
        for name, side in sides}


def seconds(passes, function, tensors):
    calls, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < LEAST_SECONDS:
        passes(function, tensors)
        calls += 1
    return spent / calls


def row(work, passes, least_seconds):
    tensors = inputs(work)
    check(work, passes, tensors)
    turns, begin = [], time.monotonic()
    while len(turns) < 5 or time.monotonic() - begin < least_seconds:
        turns.append([seconds(passes, side, tensors) for side in (work.ours, work.theirs)])
    ours, theirs = (statistics.median(column) for column in zip(*turns))
    return {"work": f"{work.name}, {'forward' if passes is forward else 'both passes'}", "peer": work.peer,
            "unit": "ms", "ours": 1e3 * ours, "theirs": 1e3 * theirs,
            "ratio": statistics.median(theirs / ours for ours, theirs in turns)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operators", help="libattend_operators.so, built against this PyTorch")
    parser.add_argument("--seconds", type=float, default=2, help="minimum seconds per row")
    parser.add_argument("--only", default="", help="only rows with this in their names")
    parser.add_argument("--errors", action="store_true", help="print errors of both sides instead of times")
    options = parser.parse_args()
    torch.ops.load_library(options.operators)
    torch.set_num_threads(1)
    for work in works():
        if options.errors:
            if work.backward and options.only in work.name:
                print(json.dumps(relative_errors(work)), flush=True)
            continue
        for passes in (forward, both_passes) if work.backward else (forward,):
            if options.only in work.name:
                print(json.dumps(row(work, passes, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
