"""torch.ops.attend_kernels.*: loads the extension and gives its operators shapes, gradients and a rule for vmap."""

from __future__ import annotations

import pathlib
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._checks import arithmetic
from ._composed import composed_attention
from ._composed_recurrence import composed_convolution, composed_recurrence
from .scopes import SCOPE_TENSORS

torch.ops.load_library(str(pathlib.Path(__file__).with_name("_kernels.so")))
kernels = torch.ops.attend_kernels


def _is_forward_mode() -> bool:
    # An operator drops forward-mode derivatives without an error, so that tensor operations compute them.
    return forward_ad._current_level >= 0


def attention(*arguments: Any) -> tuple[Tensor, Tensor]:
    """Context and lse; in forward mode by tensor operations."""
    if _is_forward_mode():
        scope = TENSORS - SCOPE_TENSORS
        return composed_attention(*arguments[:scope], list(arguments[scope:TENSORS]), *arguments[TENSORS:])
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return kernels.attention.default(*arguments, torch.is_grad_enabled())[:2]
    if torch.is_grad_enabled():
        return _Recorded.apply(*arguments)[:2]
    return _unrecorded(kernels.attention.default, (*arguments, False))[:2]


def _unrecorded(operator: Any, arguments: Any) -> Any:
    """Calls an operator without the layers that record gradients and take keywords, half the time of a call."""
    with torch._C._AutoDispatchBelowAutograd():
        return operator._op(*arguments)


class _Recorded(torch.autograd.Function):
    """The registered gradient, without the time that PyTorch takes for the defaults of many arguments."""

    @staticmethod
    def forward(ctx, *arguments):
        results = _unrecorded(kernels.attention.default, (*arguments, any(ctx.needs_input_grad)))
        _attention_setup(ctx, arguments, results)
        return results

    @staticmethod
    def backward(ctx, *gradients):
        return _attention_backward(ctx, *gradients)[:PROBLEM]


def recurrence(*arguments: Any) -> tuple[Tensor, Tensor]:
    """Output and last state; in forward mode by tensor operations."""
    return composed_recurrence(*arguments) if _is_forward_mode() else kernels.recurrence(*arguments)[:2]


def convolution(*arguments: Any) -> tuple[Tensor, Tensor]:
    """Output and last inputs; in forward mode by tensor operations."""
    return composed_convolution(*arguments) if _is_forward_mode() else kernels.convolution(*arguments)

PARTS = 11  # arguments of attention with a gradient
TENSORS = PARTS + 2 + SCOPE_TENSORS  # its tensors: parts, positions, and tensors of the scope
PROBLEM = TENSORS + 3  # all of its arguments that other operators take, too


def _rows(x: Tensor) -> tuple[Any, ...]:
    return tuple(x.shape[:3])


def _new_rows(like: Tensor, heads: Any, rows: Any, depth: Any) -> Tensor:
    # The order of heads and rows in memory, as the operators choose it.
    if like.stride(1) < like.stride(2):
        return like.new_empty(like.shape[0], rows, heads, depth).transpose(1, 2)
    return like.new_empty(like.shape[0], heads, rows, depth)


@torch.library.register_fake("attend_kernels::attention")
def _(query, key, value, *rest):
    kept, differentiable = arithmetic(query.dtype), rest[-1]
    context = _new_rows(query, *query.shape[1:3], value.shape[3])
    half = differentiable and query.dtype in (torch.bfloat16, torch.float16)
    unrounded = context.new_empty(context.shape, dtype=torch.float32) if half else query.new_empty(0)
    return context, query.new_empty(_rows(query), dtype=kept), unrounded


@torch.library.register_fake("attend_kernels::attention_backward")
def _(*arguments):
    query, wanted = arguments[0], arguments[-1]
    kept = arithmetic(query.dtype)
    results = []
    for index, part in enumerate(arguments[:PARTS]):
        if index < 3:
            results.append(_new_rows(part, *part.shape[1:]))
            continue
        computed = part is not None and wanted >> index & 1
        sizes = (query.shape[1], query.shape[3]) if index == 3 else part.shape if computed else ()
        results.append(query.new_empty(sizes if computed else (0,), dtype=kept))
    return tuple(results)


def _selected(lse, heads):
    return len(heads) or lse.shape[1]


@torch.library.register_fake("attend_kernels::weights")
def _(query, key, *rest):
    lse, heads, _, rows = rest[-4:]
    return lse.new_empty(lse.shape[0], _selected(lse, heads), rows, key.shape[2])


@torch.library.register_fake("attend_kernels::top")
def _(*arguments):
    lse, heads, _, rows, count = arguments[-5:]
    found = lse.new_empty(lse.shape[0], _selected(lse, heads), rows, count)
    return found, found.new_empty(found.shape, dtype=torch.int64)


@torch.library.register_fake("attend_kernels::entropy")
def _(*arguments):
    lse, heads, _, rows = arguments[-4:]
    return lse.new_empty(lse.shape[0], _selected(lse, heads), rows)


@torch.library.register_fake("attend_kernels::column_sums")
def _(query, key, *rest):
    lse, heads = rest[-4:-2]
    return lse.new_empty(lse.shape[0], _selected(lse, heads), key.shape[2])


@torch.library.register_fake("attend_kernels::dropout_mask")
def _(like, batch, heads, queries, keys, probability, seed):
    return like.new_empty((batch, heads, queries, keys), dtype=arithmetic(like.dtype))


SEGMENT = 128  # tokens between two states that backward keeps


@torch.library.register_fake("attend_kernels::recurrence")
def _(query, key, value, decay, strength, initial, offsets, delta, normalise, scale):
    batch, heads, tokens, value_depth = value.shape
    depth = key.shape[3]
    kept = arithmetic(value.dtype)
    if offsets is None:
        sequences, segments = batch, (tokens + SEGMENT - 1) // SEGMENT
    else:
        sequences = offsets.shape[0] - 1
        segments = tokens // SEGMENT + sequences
    return (value.new_empty(value.shape), value.new_empty((sequences, heads, depth, value_depth), dtype=kept),
            value.new_empty((batch * heads * (segments * depth + (tokens if delta else 0)) * value_depth,),
                            dtype=kept))


@torch.library.register_fake("attend_kernels::recurrence_backward")
def _(query, key, value, decay, strength, initial, offsets, delta, normalise, scale, kept, grad_output, grad_state):
    arithmetic_dtype = arithmetic(value.dtype)
    rows = (*value.shape[:3], key.shape[3])

    def like(x):
        return value.new_empty((0,) if x is None else x.shape, dtype=arithmetic_dtype)

    return (value.new_empty(rows), value.new_empty(rows), value.new_empty(value.shape), like(decay), like(strength),
            like(initial))


@torch.library.register_fake("attend_kernels::convolution")
def _(input, weight, bias, state, silu):
    return input.new_empty(input.shape), input.new_empty((input.shape[0], weight.shape[1] - 1, input.shape[2]))


@torch.library.register_fake("attend_kernels::convolution_backward")
def _(input, weight, bias, state, silu, grad_output, grad_state):
    def like(x):
        return input.new_empty((0,) if x is None else x.shape)

    return like(input), like(weight), like(bias), like(state)


def _leaves(tensors, higher):
    """New names of tensors, such that one tensor given twice gets two gradients."""
    return [None if x is None else x.view_as(x) if higher and x.requires_grad else x.detach().requires_grad_()
            for x in tensors]


def _second_gradients(compute, inputs, upstream, wanted, grads, needed):
    """Gradients of a first derivative by `inputs` and `upstream`.

    compute: results from the inputs; wanted: which inputs the first derivative is by, with `grads` the gradients of
    these derivatives; needed: which of inputs + upstream get one."""
    higher = torch.is_grad_enabled()
    found = [None] * (len(inputs) + len(upstream))
    by = [n for n, use in enumerate(wanted) if use and inputs[n] is not None and grads[n] is not None]
    if not by:
        return found
    with torch.enable_grad():
        x, up = _leaves(inputs, higher), _leaves(upstream, higher)
        pairs = [(y, g) for y, g in zip(compute(x), up) if g is not None and y.requires_grad]
        first = torch.autograd.grad([y for y, _ in pairs], [x[n] for n in by], [g for _, g in pairs],
                                    create_graph=True, allow_unused=True)
        used = [(d, grads[n]) for n, d in zip(by, first) if d is not None and d.requires_grad]
        into = [(n, t) for n, t in enumerate(x + up) if t is not None and needed[n]]
        if used and into:
            second = torch.autograd.grad([d for d, _ in used], [t for _, t in into],
                                         [g.to(d.dtype) for d, g in used], create_graph=higher, allow_unused=True)
            for (n, _), d in zip(into, second):
                found[n] = d
    return found


def _attention_setup(ctx, inputs, output):
    context, lse, unrounded = output
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(unrounded)
    half = context.dtype in (torch.bfloat16, torch.float16)
    ctx.save_for_backward(*inputs[:TENSORS], unrounded if half else context, lse)
    ctx.rest = inputs[TENSORS:PROBLEM]


def _attention_backward(ctx, grad_context, grad_lse, _):
    *problem, context, lse = ctx.saved_tensors
    nothing = (None,) * (PROBLEM + 1 - PARTS)
    if grad_context is None and grad_lse is None:
        return (*(None,) * PARTS, *nothing)
    if grad_context is None:
        grad_context = torch.zeros_like(context, dtype=problem[0].dtype)
    wanted = sum(1 << n for n in range(PARTS) if ctx.needs_input_grad[n])
    arguments = (*problem, *ctx.rest, context, lse, grad_context, grad_lse, wanted)
    if torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
        found = kernels.attention_backward.default(*arguments)
    else:
        found = _unrecorded(kernels.attention_backward.default, arguments)
    gradients = [g if wanted >> n & 1 else None for n, g in enumerate(found)]
    if gradients[3] is not None and problem[3].dim() == 1:
        gradients[3] = gradients[3].sum(0)
    return (*gradients, *nothing)


def _attention_backward_setup(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:TENSORS], *inputs[PROBLEM + 2:PROBLEM + 4])
    ctx.rest, ctx.wanted = inputs[TENSORS:PROBLEM], inputs[PROBLEM + 4]


def _attention_second_backward(ctx, *grads):
    *problem, grad_context, grad_lse = ctx.saved_tensors
    inputs, others = problem[:PARTS], problem[PARTS:]

    def compute(x):
        return composed_attention(*x, *others[:2], others[2:], *ctx.rest)

    # The operator computes the gradient of a vector per head.
    shared = inputs[3] is not None and inputs[3].dim() == 1
    if shared:
        inputs[3] = inputs[3].expand(inputs[0].shape[1], -1)
    needed = [*ctx.needs_input_grad[:PARTS], *ctx.needs_input_grad[PROBLEM + 2:PROBLEM + 4]]
    wanted = [n < 3 or ctx.wanted >> n & 1 for n in range(PARTS)]
    found = _second_gradients(compute, inputs, [grad_context, grad_lse], wanted, grads, needed)
    if shared and found[3] is not None:
        found[3] = found[3].sum(0)
    return (*found[:PARTS], *(None,) * (PROBLEM - PARTS + 2), *found[PARTS:], None)


torch.library.register_autograd("attend_kernels::attention", _attention_backward, setup_context=_attention_setup)
torch.library.register_autograd("attend_kernels::attention_backward", _attention_second_backward,
                                setup_context=_attention_backward_setup)


def _summed_heads(x: Tensor, heads: int) -> Tensor:
    return x if x.shape[1] == heads else x.unflatten(1, (heads, x.shape[1] // heads)).sum(2)


def _recurrence_setup(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(output[2])
    ctx.save_for_backward(*inputs[:7], output[2])
    ctx.rest = inputs[7:]


def _recurrence_backward(ctx, grad_output, grad_state, _):
    *parts, kept = ctx.saved_tensors
    if grad_output is None and grad_state is None:
        return (None,) * 10
    if grad_output is None:
        grad_output = torch.zeros_like(parts[2])
    found = kernels.recurrence_backward(*parts, *ctx.rest, kept, grad_output, grad_state)
    gradients = [g if need else None for g, need in zip(found, ctx.needs_input_grad)]
    for n in (0, 1):
        if gradients[n] is not None:
            gradients[n] = _summed_heads(gradients[n], parts[n].shape[1])
    return (*gradients, None, None, None, None)


def _recurrence_backward_setup(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:7], *inputs[11:13])
    ctx.rest = inputs[7:10]


def _recurrence_second_backward(ctx, *grads):
    saved = ctx.saved_tensors
    parts, offsets, upstream = list(saved[:6]), saved[6], list(saved[7:])
    heads = parts[2].shape[1]
    shared = heads // parts[0].shape[1]
    for n in (0, 1):  # the operator computes these gradients per head of values
        parts[n] = parts[n].repeat_interleave(shared, 1)

    def compute(x):
        return composed_recurrence(*x, offsets, *ctx.rest)

    needed = [*ctx.needs_input_grad[:6], *ctx.needs_input_grad[11:13]]
    found = _second_gradients(compute, parts, upstream, [True] * 6, grads, needed)
    for n in (0, 1):
        if found[n] is not None:
            found[n] = _summed_heads(found[n], heads // shared)
    return (*found[:6], None, None, None, None, None, *found[6:])


torch.library.register_autograd("attend_kernels::recurrence", _recurrence_backward, setup_context=_recurrence_setup)
torch.library.register_autograd("attend_kernels::recurrence_backward", _recurrence_second_backward,
                                setup_context=_recurrence_backward_setup)


def _convolution_setup(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:4])
    ctx.silu = inputs[4]


def _convolution_backward(ctx, grad_output, grad_state):
    parts = ctx.saved_tensors
    if grad_output is None and grad_state is None:
        return (None,) * 5
    if grad_output is None:
        grad_output = torch.zeros_like(parts[0])
    found = kernels.convolution_backward(*parts, ctx.silu, grad_output, grad_state)
    return (*[g if need else None for g, need in zip(found, ctx.needs_input_grad)], None)


def _convolution_backward_setup(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:4], *inputs[5:7])
    ctx.silu = inputs[4]


def _convolution_second_backward(ctx, *grads):
    saved = ctx.saved_tensors
    needed = [*ctx.needs_input_grad[:4], *ctx.needs_input_grad[5:7]]
    found = _second_gradients(lambda x: composed_convolution(*x, ctx.silu), list(saved[:4]), list(saved[4:]),
                              [True] * 4, grads, needed)
    return (*found[:4], None, *found[4:])


torch.library.register_autograd("attend_kernels::convolution", _convolution_backward,
                                setup_context=_convolution_setup)
torch.library.register_autograd("attend_kernels::convolution_backward", _convolution_second_backward,
                                setup_context=_convolution_backward_setup)


def _slice(x: Any, axis: Any, n: int) -> Any:
    if isinstance(x, (list, tuple)) and isinstance(axis, (list, tuple)):
        return [_slice(one, own, n) for one, own in zip(x, axis)]
    return x.select(axis, n) if isinstance(x, Tensor) and axis is not None else x


def _register_vmap(name: str) -> None:
    """vmap by one call per mapped entry: correct for every argument; a batch axis is faster."""
    operator = getattr(kernels, name)

    def rule(info, in_dims, *arguments):
        calls = [operator(*(_slice(x, axis, n) for x, axis in zip(arguments, in_dims)))
                 for n in range(info.batch_size)]
        if isinstance(calls[0], Tensor):
            return torch.stack(calls), 0
        return tuple(torch.stack(one) for one in zip(*calls)), (0,) * len(calls[0])

    torch.library.register_vmap(f"attend_kernels::{name}", rule)


for _name in ("attention", "attention_backward", "weights", "top", "entropy", "column_sums", "recurrence",
              "recurrence_backward", "convolution", "convolution_backward"):
    _register_vmap(_name)
