#!/usr/bin/env python3
"""Compares attention over graphs with PyTorch Geometric: `attend compute --edges` and models of type graph.

A row of `./dev conform`. Draws graphs of nodes with many, one or no edges, and the weights of GATConv, GATv2Conv,
TransformerConv and AGNNConv.

- The operator takes the same weights as parameters. Contexts and gradients of queries, keys, values and parameters must
  agree within the tolerance of the dtype.
- Models of type graph are trained for one epoch and then get random weights. Their probabilities for all nodes are
  compared with layers of PyTorch Geometric with these weights.

GATConv lacks the factor v and the bias b of our score; they are set to 1 and 0.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch
from torch_geometric.nn import AGNNConv, GATConv, GATv2Conv, TransformerConv

from conform_report import Report, arguments

TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-5}
LABELS = 3


def run(*command, stdin=""):
    done = subprocess.run(list(map(str, command)), input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def drawn(module, dtype):
    for weight in module.parameters():
        torch.nn.init.normal_(weight, 0, 0.6)
    return module.to(dtype)


def drawn_edges(draw, sources, targets, count):
    """Distinct pairs of a source and a target, [2, edges], in random order. Some targets lack edges."""
    pairs = [(source, target) for source in range(sources) for target in range(targets) if target % 5 != 3]
    chosen = draw.permutation(len(pairs))[:count]
    return torch.tensor([pairs[i] for i in chosen], dtype=torch.long).reshape(-1, 2).T.contiguous()


# The operator

class Call:
    """Arrays of one call of `attend compute`, by option or parameter, and the layer's context."""

    def __init__(self, context, query, key, value, choices, **parameters):
        self.context, self.choices, self.parameters = context, choices, parameters
        self.arrays = {"query": query, "key": key, "value": value}


def heads_of(x, heads):
    """Reshapes [nodes, heads * depth] to [1, heads, nodes, depth]."""
    return x.unflatten(-1, (heads, -1)).transpose(0, 1).unsqueeze(0)


def gat(x, edges, heads, depth):
    layer = drawn(GATConv((x[0].shape[1], x[1].shape[1]), depth, heads, add_self_loops=False, bias=False), x[0].dtype)
    key, query = (heads_of(to(one), heads) for to, one in zip((layer.lin_src, layer.lin_dst), x))
    ones = torch.ones(heads, 1, dtype=x[0].dtype)
    return Call(layer(x, edges, size=(len(x[0]), len(x[1]))), query, key, key, ["--score", "additive_leaky_relu"],
                v=ones, W_q=layer.att_dst.transpose(0, 1), W_k=layer.att_src.transpose(0, 1))


def gatv2(x, edges, heads, depth):
    layer = drawn(GATv2Conv((x[0].shape[1], x[1].shape[1]), depth, heads, add_self_loops=False), x[0].dtype)
    with torch.no_grad():
        layer.bias.zero_()
    key, query = (one.expand(1, heads, -1, -1) for one in x)
    w_k, w_q = (map_of.weight.unflatten(0, (heads, depth)) for map_of in (layer.lin_l, layer.lin_r))
    offset = (layer.lin_l.bias + layer.lin_r.bias).unflatten(0, (heads, depth))
    return Call(layer(x, edges), query, key, heads_of(layer.lin_l(x[0]), heads), ["--score", "additive_leaky_relu"],
                v=layer.att[0], W_q=w_q, W_k=w_k, b=offset)


def transformer(x, edges, heads, depth):
    layer = drawn(TransformerConv((x[0].shape[1], x[1].shape[1]), depth, heads, root_weight=False), x[0].dtype)
    query = heads_of(layer.lin_query(x[1]), heads)
    key, value = (heads_of(map_of(x[0]), heads) for map_of in (layer.lin_key, layer.lin_value))
    return Call(layer(x, edges), query, key, value, ["--score", "scaled_dot"])


def agnn(x, edges, heads, depth):
    """One head; targets and sources are the same. The factor of the cosine becomes a temperature."""
    layer = AGNNConv(requires_grad=False, add_self_loops=False)
    with torch.no_grad():
        layer.beta.fill_(4)
    one = x[0].expand(1, 1, -1, -1)
    return Call(layer.to(x[0].dtype)(x[0], edges), one, one, one,
                ["--score", "cosine", "--normaliser", "temperature:0.25"])


def saved(folder, name, tensor):
    path = folder / f"{name}.npy"
    numpy.save(path, numpy.ascontiguousarray(tensor.detach().numpy()))
    return path


def compute(program, call, edges, slope):
    """Context and gradients by the program, by name."""
    with tempfile.TemporaryDirectory() as folder:
        folder, command = pathlib.Path(folder), [program, "compute", *call.choices]
        for name, tensor in call.arrays.items():
            command += [f"--{name}", saved(folder, name, tensor)]
        for name, tensor in call.parameters.items():
            command += ["--param", f"{name}={saved(folder, f'parameter_{name}', tensor)}"]
        command += ["--edges", saved(folder, "edges", edges), "--grad", saved(folder, "slope", slope)]
        run(*command, "--out", folder / "out.npz")
        with numpy.load(folder / "out.npz") as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}


def compare_operator(report, program, draw, number):
    dtype = (torch.float64, torch.float32)[number % 2]
    make = (gat, gatv2, transformer, agnn)[number // 2 % 4]
    heads, depth = (1 if make is agnn else int(draw.integers(1, 5))), int(draw.integers(1, 9))
    sources, targets = int(draw.integers(20, 60)), int(draw.integers(1, 20))
    targets = sources if make is agnn else targets
    x = tuple(torch.tensor(draw.normal(size=(count, 6)), dtype=dtype, requires_grad=True)
              for count in (sources, targets))
    edges = drawn_edges(draw, sources, targets, int(draw.integers(0, 200)))
    call = make(x, edges, heads, depth)
    context = heads_of(call.context, heads)
    slope = torch.tensor(draw.normal(size=context.shape), dtype=dtype)
    name = (f"{make.__name__}, {str(dtype)[6:]}, {edges.shape[1]} edges, {sources} to {targets} nodes, "
            f"{heads} heads of {depth}")
    found = compute(program, call, edges, slope)
    report.compare(f"{name}, context", found["context"].tolist(), context.tolist(), TOLERANCE[dtype])
    if make is agnn:
        return  # one tensor is query, key and value
    # Our gradients, propagated to the inputs and weights of the layer, must equal the layer's own.
    leaves = leaves_of(call.context)
    theirs = torch.autograd.grad(context, leaves, slope, retain_graph=True, allow_unused=True)
    outputs, slopes = zip(*[(tensor, found[f"grad_{part}"].reshape(tensor.shape))
                            for part, tensor in (call.arrays | call.parameters).items() if tensor.requires_grad])
    ours = torch.autograd.grad(outputs, leaves, slopes, allow_unused=True)
    compare_slopes(report, f"{name}, gradients", ours, theirs, 10 * TOLERANCE[dtype])


def compare_slopes(report, name, ours, theirs, tolerance):
    far, scale = 0.0, 1.0
    for a, b in zip(ours, theirs, strict=True):
        if a is None or b is None:
            continue
        far, scale = max(far, (a - b).abs().max().item()), max(scale, b.abs().max().item())
    report.state(name, far <= tolerance * scale, f"difference {far:.3g}, allowed {tolerance * scale:.3g}")


def leaves_of(tensor):
    """Leaf tensors of the autograd graph of `tensor`."""
    found, seen, left = [], set(), [tensor.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        left += [following for following, _ in node.next_functions]
    return found


# Models

class Graph:
    """A folder with nodes.tsv and edges.tsv, and its tensors for PyTorch Geometric."""

    def __init__(self, draw, folder, directed, normalised, nodes=40, features=15):
        folder.mkdir()
        self.x = torch.zeros(nodes, features, dtype=torch.float64)
        with open(folder / "nodes.tsv", "w", encoding="utf-8") as file:
            for node in range(nodes):
                chosen = draw.permutation(features)[:int(draw.integers(1, 6))]
                if node < features and node not in chosen:
                    chosen = [*chosen, node]  # each feature occurs in a node
                values = [round(float(draw.random()) + 0.01, 3) if draw.random() < 0.5 else 1 for _ in chosen]
                self.x[node, list(map(int, chosen))] = torch.tensor(values, dtype=torch.float64)
                written = " ".join(f"{feature}:{value}" if value != 1 else str(feature)
                                   for feature, value in zip(chosen, values))
                file.write(f"n{node}\t{('train', 'valid', 'test', '-')[node % 4]}\tl{node // 4 % LABELS}\t{written}\n")
        if normalised:
            self.x /= self.x.abs().sum(1, keepdim=True)
        pairs = [(a, b) for a in range(nodes - 3) for b in range(nodes - 3) if (a != b if directed else a < b)]
        chosen = [pairs[i] for i in draw.permutation(len(pairs))[:90]]
        with open(folder / "edges.tsv", "w", encoding="utf-8") as file:
            file.writelines(f"n{a}\tn{b}\n" for a, b in chosen)
        seen = chosen if directed else chosen + [(b, a) for a, b in chosen]
        self.edges = torch.tensor(seen).T.contiguous()


def redrawn(path, draw, fixed):
    """Replaces the weights of a file with random or `fixed(name, shape)` ones. Returns them by name."""
    data, weights = bytearray(path.read_bytes()), {}
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for name, tensor in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = (start + place for place in tensor["data_offsets"])
        given = fixed(name, tensor["shape"])
        array = (given if given is not None else draw.normal(size=tensor["shape"]) * 0.7).astype("<f4")
        data[begin:end] = array.tobytes()
        weights[name] = torch.tensor(array, dtype=torch.float64)
    path.write_bytes(data)
    return weights


def gat_layer(weights, name, mapped, heads, depth, concat):
    """GATConv with our weights; `mapped` is [inputs, heads * depth]."""
    layer = GATConv(mapped.shape[0], depth, heads, concat)
    return {"lin.weight": mapped.T, "bias": weights[f"{name}.bias"],
            "att_src": weights[f"{name}.attention.W_k"].reshape(1, heads, depth),
            "att_dst": weights[f"{name}.attention.W_q"].reshape(1, heads, depth)}, layer


def gatv2_layer(weights, name, mapped, heads, depth, concat):
    """GATv2Conv with our weights. Keys equal values, so W_k is the identity. The map of targets includes W_q."""
    layer = GATv2Conv(mapped.shape[0], depth, heads, concat)
    by_head = mapped.T.unflatten(0, (heads, depth))
    targets = weights[f"{name}.attention.W_q"].reshape(heads, depth, depth) @ by_head
    return {"lin_l.weight": mapped.T, "lin_l.bias": torch.zeros(heads * depth, dtype=torch.float64),
            "lin_r.weight": targets.flatten(0, 1), "lin_r.bias": weights[f"{name}.attention.b"].flatten(),
            "att": weights[f"{name}.attention.v"].reshape(1, heads, depth), "bias": weights[f"{name}.bias"]}, layer


def transformer_layer(weights, name, mapped, heads, depth, concat):
    """TransformerConv with our weights. Queries, keys and values are equal; our bias is the bias of its skip map."""
    layer = TransformerConv(mapped.shape[0], depth, heads, concat)
    state = {f"lin_{part}.weight": mapped.T for part in ("key", "query", "value")} | {
        f"lin_{part}.bias": torch.zeros(heads * depth, dtype=torch.float64) for part in ("key", "query", "value")}
    skip = {"lin_skip.weight": torch.zeros(layer.lin_skip.weight.shape), "lin_skip.bias": weights[f"{name}.bias"]}
    return state | skip, layer


def identity_of(name, shape):
    """Values of parameters that GATv2Conv (W_k) and GATConv (v and b with one hidden unit) lack."""
    if name.endswith("W_k") and shape[-1] == shape[-2] and shape[-1] > 1:
        return numpy.broadcast_to(numpy.eye(shape[-1]), shape)
    if name.endswith("attention.v") and shape[-1] == 1:
        return numpy.ones(shape)
    if name.endswith("attention.b") and shape[-1] == 1:
        return numpy.zeros(shape)
    return None


MODELS = {"GAT": (gat_layer, {"model.attention_depth": 1}),
          "GATv2": (gatv2_layer, {"model.attention_depth": LABELS, "model.depth": 2 * LABELS, "model.heads": 2}),
          "graph transformer": (transformer_layer, {"model.score": "scaled_dot"})}


def compare_model(report, program, draw, folder, kind, directed, normalised, layers):
    graph = Graph(draw, folder / "graph", directed, normalised)
    make, settings = MODELS[kind]
    settings = {"model.type": "graph", "train.epochs": 1, "model.layers": layers, "model.depth": 8, "model.heads": 4,
                "model.output_heads": 2, "data.directed": str(directed).lower(),
                "data.normalise_features": str(normalised).lower()} | settings
    run(program, "train", "--data", folder / "graph", "--out", folder / "model",
        *(part for key, value in settings.items() for part in ("--set", f"{key}={value}")))
    weights = redrawn(folder / "model/weights.safetensors", draw, identity_of)
    loops = torch.arange(len(graph.x)).expand(2, -1)
    edges, x = torch.cat([graph.edges, loops], 1), graph.x
    for number in range(1, layers + 1):
        last = number == layers
        heads = settings["model.output_heads"] if last else settings["model.heads"]
        mapped = weights["features"] if number == 1 else weights[f"map{number}.weight"].T
        depth = LABELS if last else settings["model.depth"] // heads
        state, layer = make(weights, f"layer{number}", mapped, heads, depth, not last)
        layer.double().load_state_dict(state)
        x = layer(x, edges)
        x = x if last else torch.nn.functional.elu(x)
    theirs = x.log_softmax(-1).tolist()
    answers = run(program, "predict", folder / "model", "--json", "--beam", LABELS, "--nbest", LABELS,
                  stdin="".join(f"n{node}\n" for node in range(len(graph.x))))
    labels = (folder / "model/target.vocab").read_text(encoding="utf-8").split()[-LABELS:]
    ours = [[{one["target"]: one["log_probability"] for one in json.loads(line)["predictions"]}[label]
             for label in labels] for line in answers.splitlines()]
    report.compare(f"{kind}, {layers} layers{', directed' if directed else ''}{', normalised' if normalised else ''}, "
                   f"{len(ours)} nodes", ours, theirs, 2e-5)


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    draw, report = numpy.random.default_rng(options.seed), Report()
    for number in range(48):
        compare_operator(report, options.program, draw, number)
    for number in range(12):
        with tempfile.TemporaryDirectory() as folder:
            compare_model(report, options.program, draw, pathlib.Path(folder), list(MODELS)[number % 3],
                          directed=number // 3 % 2 == 1, normalised=number // 6 == 1, layers=1 + number // 3 % 3)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
