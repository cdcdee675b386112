#!/usr/bin/env python3
"""Measures models of transformers with attention and recurrences of the Python package `attend`.

Run it with the Python of an environment that has the wheel and transformers (./dev wheel makes
build/wheel/torch-2.15.0). Models have random weights. Each number is the median of processor times that were measured
in turns; memory is the peak above the model, in a process of its own. In the cases of recurrences, sdpa and eager have
the functions of transformers. Prints figures with their bars; --json FILE adds them to a file of bench/results. Exits
with 1 if a bar is missed.
"""

import argparse
import copy
import datetime
import itertools
import json
import statistics
import subprocess
import sys
import time

import torch
import transformers

import attend
from attend._transformers_recurrences import REPLACEMENTS
from wheel_bars import Figures, processor, results_file

KINDS = ("attend", "sdpa", "eager")
BERT = ("BertModel", "BertConfig", {"vocab_size": 1000, "max_position_embeddings": 2048,
                                    "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0})
GPT2 = ("GPT2Model", "GPT2Config", {"vocab_size": 1000, "n_positions": 2048, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
                                    "embd_pdrop": 0.0})
QWEN = ("Qwen3NextModel", "Qwen3NextConfig", {
    "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 1, "head_dim": 128, "linear_num_key_heads": 4, "linear_num_value_heads": 8,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "num_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256})


def made(described, kind, dtype=torch.float32, **changed):
    model, config, options = described
    torch.manual_seed(1)
    made_config = getattr(transformers, config)(**copy.deepcopy(options), **changed)
    return getattr(transformers, model)._from_config(made_config, attn_implementation=kind).to(dtype)


def in_turns(calls, turns):
    """The median processor time of each call in seconds; all calls take turns, after one call that is not counted.

    The order changes, so that each call follows each other one equally often: after one that uses much memory, such as
    eager's, a call is slower.
    """
    found = {name: [] for name in calls}
    orders = itertools.cycle(itertools.permutations(calls))
    for turn in range(turns + 1):
        for name in next(orders):
            began = time.process_time()
            calls[name]()
            if turn > 0:
                found[name].append(time.process_time() - began)
    return {name: statistics.median(times) for name, times in found.items()}


def add(figures, case, values, bars, unit="s"):
    """Adds attend's value and the others' over it. `bars`: {kind: bar}."""
    figures.add(case, "attend", values["attend"], unit)
    for kind in KINDS[1:]:
        if kind in values:
            figures.add(case, f"{kind} over attend", values[kind] / values["attend"], "x", bars.get(kind))


def model_call(model, tokens, train):
    ids = torch.arange(tokens).remainder(1000)[None]

    def call():
        with torch.set_grad_enabled(train):
            found = model(ids, use_cache=False).last_hidden_state
            if train:
                model.zero_grad()
                found.float().square().mean().backward()

    return call


def whole_models(options, dtype, figures):
    for name, described in (("BERT-base", BERT), ("GPT-2", GPT2)):
        models = {kind: made(described, kind, dtype).eval() for kind in KINDS}
        for tokens, train in ((512, False), (2048, False), (512, True)):
            times = in_turns({kind: model_call(model, tokens, train) for kind, model in models.items()}, options.turns)
            add(figures, f"{name}, {'training step' if train else 'forward'}, {tokens} tokens, {str(dtype)[6:]}", times,
                {"sdpa": 1, "eager": 1})


def attention_functions():
    from transformers import AttentionInterface
    from transformers.models.bert.modeling_bert import eager_attention_forward

    return {"attend": AttentionInterface()["attend"], "sdpa": AttentionInterface()["sdpa"],
            "eager": eager_attention_forward}


def layer_inputs(tokens, dtype=torch.float32, train=False):
    """Queries, keys and values of one layer with 12 heads of depth 64."""
    return [torch.randn(1, tokens, 12, 64).to(dtype).transpose(1, 2).requires_grad_(train) for _ in range(3)]


def attention_share(options, dtype, figures):
    """The attention functions of one layer."""
    from transformers.masking_utils import AttentionMaskInterface

    functions = attention_functions()
    module = torch.nn.Module()
    for causal in (False, True):
        module.is_causal = causal
        for tokens, train in ((512, False), (2048, False), (512, True)):
            q, k, v = layer_inputs(tokens, dtype, train)
            masks = {kind: AttentionMaskInterface()[kind](batch_size=1, q_length=tokens, kv_length=tokens, dtype=dtype)
                     if causal else None for kind in KINDS}

            def call(kind):
                with torch.set_grad_enabled(train):
                    for _ in range(2048 // tokens):
                        found = functions[kind](module, q, k, v, masks[kind], scaling=0.125)[0]
                        if train:
                            torch.autograd.grad(found, [q, k, v], torch.ones_like(found))

            times = in_turns({kind: lambda kind=kind: call(kind) for kind in KINDS}, 3 * options.turns)
            name = f"{'causal' if causal else 'full'}, {'forward and backward' if train else 'forward'}"
            bar = 1.3 if dtype == torch.float32 else 1.5
            add(figures, f"attention of a layer, {name}, {tokens} tokens, {str(dtype)[6:]}",
                {kind: t * 1000 / (2048 // tokens) for kind, t in times.items()}, {"sdpa": bar, "eager": bar}, "ms")


def delta_rule_share(options, figures):
    """The gated delta rule of one layer: 2048 tokens, 4 heads of keys and 8 of values, depth 128."""
    from transformers.models.qwen3_next import modeling_qwen3_next as module
    ours = module.torch_chunk_gated_delta_rule
    q, k = (torch.randn(1, 2048, 4, 128, requires_grad=True) for _ in range(2))
    v = torch.randn(1, 2048, 8, 128, requires_grad=True)
    g, beta = (-torch.rand(1, 2048, 8)).requires_grad_(), torch.rand(1, 2048, 8, requires_grad=True)
    up = torch.randn(1, 2048, 8, 128)

    def call(function, train):
        with torch.set_grad_enabled(train):
            found = function(q, k, v, g=g, beta=beta, use_qk_l2norm_in_kernel=True)[0]
            if train:
                torch.autograd.grad(found, [q, k, v, g, beta], up)

    for train in (False, True):
        times = in_turns({"attend": lambda: call(ours, train), "sdpa": lambda: call(ours.original, train)}, options.turns)
        add(figures, f"gated delta rule of a layer, {'forward and backward' if train else 'forward'}, 2048 tokens, float32",
            {kind: t * 1000 for kind, t in times.items()}, {}, "ms")


def without_replacements():
    from transformers.models.qwen3_next import modeling_qwen3_next as module
    for name in REPLACEMENTS:
        if name in vars(module):
            setattr(module, name, vars(module)[name].original)


def with_functions(module, functions, call):
    def chosen():
        for name, function in functions.items():
            setattr(module, name, function)
        call()

    return chosen


def recurrent_model(options, figures):
    from transformers.models.qwen3_next import modeling_qwen3_next as module
    ours = {name: vars(module)[name] for name in REPLACEMENTS if name in vars(module)}
    theirs = {name: function.original for name, function in ours.items()}
    calls = {}
    for kind, functions in (("attend", ours), ("sdpa", theirs), ("eager", theirs)):
        calls[kind] = with_functions(module, functions, model_call(made(QWEN, kind).train(), 2048, True))
    add(figures, "Qwen3-Next-like, training step, 2048 tokens, float32", in_turns(calls, options.turns),
        {"sdpa": 3, "eager": 3})


def peak_above(call):
    """Peak of the resident memory above its size before the call, in MB."""
    def status(key):
        for line in open("/proc/self/status", encoding="utf-8"):
            if line.startswith(key):
                return int(line.split()[1]) / 1024
        raise RuntimeError(key)

    open("/proc/self/clear_refs", "w", encoding="utf-8").write("5")
    before = status("VmRSS")
    call()
    return status("VmHWM") - before


def attention_weights_memory(kind):
    function, module = attention_functions()[kind], torch.nn.Module().eval()
    module.is_causal = False
    small, inputs = layer_inputs(8), layer_inputs(2048)

    def call(tensors):
        with torch.no_grad():
            return function(module, *tensors, None, scaling=0.125, output_attentions=True)[1][0, 0].sum()

    call(small)
    return peak_above(lambda: call(inputs))


def layer_weights_memory(kind, layers):
    model = made(BERT, kind, num_hidden_layers=layers).eval()
    ids = torch.arange(2048).remainder(1000)[None]

    def call():
        with torch.no_grad():
            return model(ids, output_attentions=True).attentions[0][0, 0].sum()

    with torch.no_grad():
        model(ids[:, :8])
    return peak_above(call)


def recurrent_memory(kind):
    if kind != "attend":
        without_replacements()
    model = made(QWEN, kind).train()
    model_call(model, 8, True)()
    return peak_above(model_call(model, 2048, True))


MEMORY = {
    "memory of output_attentions, attention of a layer, 2048 tokens, one head read":
        (attention_weights_memory, ("attend", "eager"), 10),
    "memory of output_attentions, BERT-base with 1 layer, 2048 tokens, one head read":
        (lambda kind: layer_weights_memory(kind, 1), ("attend", "eager"), 10),
    "memory of output_attentions, BERT-base with 12 layers, 2048 tokens, one head read":
        (lambda kind: layer_weights_memory(kind, 12), ("attend", "eager"), 10),
    "memory of Qwen3-Next-like, training step, 2048 tokens": (recurrent_memory, KINDS, 2),
}


def memory(options, figures):
    for number, (name, (_, kinds, bar)) in enumerate(MEMORY.items()):
        found = {}
        for kind in kinds:
            run = subprocess.run([sys.executable, __file__, "--threads", str(options.threads), "--child", kind, str(number)],
                                 check=True, capture_output=True, text=True)
            found[kind] = json.loads(run.stdout.splitlines()[-1])
        add(figures, name, found, {kind: bar for kind in KINDS[1:]}, "MB")


def child(kind, number):
    from transformers.models.qwen3_next import modeling_qwen3_next  # noqa: F401
    attend.register_with_transformers()
    measure = list(MEMORY.values())[int(number)][0]
    print(json.dumps(measure(kind)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=["share", "models", "recurrences", "memory"])
    parser.add_argument("--turns", type=int, default=3, help="measured calls of each (default 3)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", action="append", choices=["float32", "bfloat16"], help="default: float32")
    parser.add_argument("--json", type=results_file, help="file of bench/results")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    if options.child:
        return child(*options.child)
    attend.register_with_transformers()
    print(f"{processor()}, {options.threads} thread, PyTorch {torch.__version__}, transformers {transformers.__version__}, "
          f"attend {attend.__version__}, {datetime.date.today()}\n")
    figures = Figures("python")
    parts = options.part or ["share", "models", "recurrences", "memory"]
    for dtype in [getattr(torch, name) for name in options.dtype or ["float32"]]:
        if "share" in parts:
            attention_share(options, dtype, figures)
        if "models" in parts:
            whole_models(options, dtype, figures)
    if "recurrences" in parts:
        delta_rule_share(options, figures)
        recurrent_model(options, figures)
    if "memory" in parts:
        memory(options, figures)
    if options.json:
        figures.add_to(options.json)
    return figures.missed > 0


if __name__ == "__main__":
    sys.exit(main())
