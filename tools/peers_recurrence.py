"""Times the linear recurrences of the Python package against ONNX Runtime and transformers; tools/peers.py runs it.

    python tools/peers_recurrence.py [--seconds 2] [--only TEXT] [--threads 1]

16 heads, batch 1, float32. Outputs and gradients of both sides are compared before timing. Then the sides take turns.
Prints a JSON object per row, with the medians of the times and of the turns' ratios; one thread is timed by its
processor time, several by the clock. Memory is the growth of the peak of a process of its own, over inputs, outputs
and gradients.
"""

import argparse
import dataclasses
import json
import multiprocessing
import pathlib
import re
import statistics
import time
import typing

import onnxruntime
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper
from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule

import attend

HEADS = 16
RULES = ("linear", "gated", "delta", "gated_delta")


@dataclasses.dataclass
class Work:
    name: str
    peer: str
    ours: typing.Callable
    theirs: typing.Callable
    bar: float


class Inputs:
    def __init__(self, rule, tokens, depth, requires_grad=False):
        generator = torch.Generator().manual_seed(1)

        def drawn(*shape, draw=torch.randn):
            return draw(*shape, generator=generator)

        self.query, self.key, self.value, self.upstream = (drawn(1, HEADS, tokens, depth) for _ in range(4))
        self.key = F.normalize(self.key, dim=-1)
        self.decay = -0.1 * drawn(1, HEADS, tokens, draw=torch.rand) if "gated" in rule else None
        self.strength = drawn(1, HEADS, tokens, draw=torch.rand) if "delta" in rule else None
        self.delta = "delta" in rule
        self.state = drawn(1, HEADS, depth, depth)
        self.leaves = [x for x in (self.query, self.key, self.value, self.decay, self.strength) if x is not None]
        for leaf in self.leaves:
            leaf.requires_grad_(requires_grad)


def ours(x, initial=None):
    return attend.linear_recurrence(x.query, x.key, x.value, decay=x.decay, strength=x.strength, delta=x.delta,
                                    initial=initial)


class OnnxRecurrence:
    """The operator LinearAttention of ONNX (opset 27), forward only."""

    def __init__(self, rule, x, initial=None, threads=1):
        tokens = x.query.shape[2]

        def packed(tensor):
            return tensor.transpose(1, 2).reshape(1, tokens, -1).contiguous().numpy()

        given = {"query": packed(x.query), "key": packed(x.key), "value": packed(x.value),
                 "past": None if initial is None else initial.numpy(),
                 "decay": None if x.decay is None else packed(x.decay[..., None]),
                 "beta": None if x.strength is None else packed(x.strength[..., None])}
        self.inputs = {name: value for name, value in given.items() if value is not None}
        names = [name if value is not None else "" for name, value in given.items()]
        while not names[-1]:
            names.pop()
        node = helper.make_node("LinearAttention", names, ["output", "present"], update_rule=rule,
                                q_num_heads=HEADS, kv_num_heads=HEADS)
        graph = helper.make_graph(
            [node], "recurrence",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in self.inputs.items()],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, [None] * 3),
             helper.make_tensor_value_info("present", TensorProto.FLOAT, [None] * 4)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 27)], ir_version=12)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                    providers=["CPUExecutionProvider"])
        self.heads = (1, tokens, HEADS, -1)

    def __call__(self):
        return self.session.run(None, self.inputs)

    def output(self):
        return torch.from_numpy(self()[0]).view(self.heads).transpose(1, 2)


def transformers_rule(x):
    turned = [t.transpose(1, 2) for t in (x.query, x.key, x.value, x.decay, x.strength)]
    output, _ = torch_chunk_gated_delta_rule(*turned[:3], g=turned[3], beta=turned[4])
    return output.transpose(1, 2)


def both(run, x):
    return torch.autograd.grad(run(x), x.leaves, x.upstream)


def check_close(name, ours, theirs):
    scale = theirs.abs().max()
    error = ((ours - theirs).abs().max() / scale).item()
    if not error < 1e-4:
        raise SystemExit(f"{name}: results differ by {error:.2g} of the largest")


def forward_works(threads):
    for rule in RULES:
        for depth in (64, 128):
            for tokens in (2048, 8192):
                x = Inputs(rule, tokens, depth)
                peer = OnnxRecurrence(rule, x, threads=threads)
                name = f"{rule}, 16 heads x {tokens:,}, depth {depth}, forward"
                check_close(name, ours(x)[0], peer.output())
                yield Work(name, "ONNX Runtime", lambda x=x: ours(x), peer, 3)


def step_works(threads):
    for depth in (64, 128):
        x = Inputs("gated_delta", 1, depth)
        peer = OnnxRecurrence("gated_delta", x, x.state, threads)
        name = f"gated_delta, 16 heads, depth {depth}, one step of decoding"
        check_close(name, ours(x, x.state)[0], peer.output())
        yield Work(name, "ONNX Runtime", lambda x=x: ours(x, x.state), peer, 1)


def training_works(_):
    for depth in (64, 128):
        for tokens in (2048, 8192):
            x = Inputs("gated_delta", tokens, depth, requires_grad=True)
            name = f"gated_delta, 16 heads x {tokens:,}, depth {depth}, both passes"
            gradients = zip(both(lambda x: ours(x)[0], x), both(transformers_rule, x))
            for own, other in gradients:
                check_close(name, own, other)
            yield Work(name, "transformers", lambda x=x: both(lambda y: ours(y)[0], x),
                       lambda x=x: both(transformers_rule, x), 10)


def timed(run, threads):
    clock = time.process_time if threads == 1 else time.perf_counter
    count, seconds = 0, 0
    while seconds < 0.02:
        begin = clock()
        run()
        seconds += clock() - begin
        count += 1
    return seconds / count


def measured(work, threads, seconds):
    own, other, begin = [], [], time.monotonic()
    with torch.set_grad_enabled("both" in work.name):
        for run in (work.ours, work.theirs):
            run()
        while len(own) < 3 or time.monotonic() - begin < seconds:
            own.append(timed(work.ours, threads))
            other.append(timed(work.theirs, threads))
    ratio = statistics.median(t / o for o, t in zip(own, other))
    return {"work": f"{work.name}, {threads} thread{'s' * (threads > 1)}", "peer": work.peer,
            "ours": 1e3 * statistics.median(own), "theirs": 1e3 * statistics.median(other), "unit": "ms",
            "ratio": ratio, "bar": work.bar}


def peak_growth(connection, theirs, depth):
    torch.set_num_threads(1)
    x = Inputs("gated_delta", 2048, depth, requires_grad=True)
    run = transformers_rule if theirs else lambda y: ours(y)[0]
    small = Inputs("gated_delta", 64, depth, requires_grad=True)
    both(run, small)
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak becomes the present size
    before = resident_peak()
    both(run, x)
    # The results exist in both: the output and a gradient for each input.
    needed = sum(t.numel() for t in (*x.leaves, x.upstream)) * 4 / 2**20
    connection.send(resident_peak() - before - needed)


def resident_peak():
    status = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024


def memory_rows():
    context = multiprocessing.get_context("spawn")
    for depth in (64, 128):
        sides = []
        for theirs in (False, True):
            here, there = context.Pipe()
            process = context.Process(target=peak_growth, args=(there, theirs, depth))
            process.start()
            sides.append(max(here.recv(), 0.1))
            process.join()
        yield {"work": f"gated_delta, 16 heads x 2,048, depth {depth}, both passes, memory", "peer": "transformers",
               "ours": sides[0], "theirs": sides[1], "unit": "MB", "ratio": sides[1] / sides[0], "bar": 10}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, action="append")
    options = parser.parse_args()
    for threads in options.threads or (1, 2):
        torch.set_num_threads(threads)
        for works in (forward_works, step_works, training_works):
            for work in works(threads):
                if options.only in work.name:
                    print(json.dumps(measured(work, threads, options.seconds)), flush=True)
    for row in memory_rows():
        if options.only in row["work"]:
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
