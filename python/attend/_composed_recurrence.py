"""Recurrences and the causal convolution by tensor operations: they compute second derivatives."""

from __future__ import annotations

import torch
from torch import Tensor

from ._checks import arithmetic

EPSILON = 1e-6


def _one_sequence(x: list[Tensor | None], delta: bool, state: Tensor, first: int, end: int) -> tuple[Tensor, Tensor]:
    q, k, v, decay, strength = x
    assert q is not None and k is not None and v is not None
    outputs = []
    for t in range(first, end):
        key = k[:, :, t].unsqueeze(-1)
        if decay is not None:
            state = state * decay[:, :, t].exp().unsqueeze(-1)
        update = v[:, :, t]
        if delta:
            update = update - (state * key).sum(-2)
        if strength is not None:
            update = update * strength[:, :, t]
        state = state + key * update.unsqueeze(-2)
        outputs.append((state * q[:, :, t].unsqueeze(-1)).sum(-2))
    return (torch.stack(outputs, 2) if outputs else v[:, :, first:end]), state


def composed_recurrence(query: Tensor, key: Tensor, value: Tensor, decay: Tensor | None, strength: Tensor | None,
                        initial: Tensor | None, offsets: Tensor | None, delta: bool, normalise: bool,
                        scale: float) -> tuple[Tensor, Tensor]:
    """Output and last state of torch.ops.attend_kernels.recurrence, token by token."""
    kept = arithmetic(value.dtype)
    heads = value.shape[1]
    rows = []
    for x in (query, key):
        own = x.to(kept).repeat_interleave(heads // x.shape[1], 1)
        rows.append(own * (own.square().sum(-1, keepdim=True) + EPSILON).rsqrt() if normalise else own)
    x = [rows[0] * scale, rows[1], value.to(kept), decay, strength]
    tokens = value.shape[2]
    bounds = [0, tokens] if offsets is None else offsets.tolist()
    sequences = value.shape[0] if offsets is None else len(bounds) - 1
    if initial is None:
        initial = value.new_zeros((sequences, heads, key.shape[3], value.shape[3]), dtype=kept)
    if offsets is None:
        output, state = _one_sequence(x, delta, initial, 0, tokens)
        return output.to(value.dtype), state
    found = [_one_sequence(x, delta, initial[n:n + 1], bounds[n], bounds[n + 1]) for n in range(sequences)]
    if not found:
        return value, initial
    return torch.cat([o for o, _ in found], 2).to(value.dtype), torch.cat([s for _, s in found])


def composed_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, state: Tensor | None,
                         silu: bool) -> tuple[Tensor, Tensor]:
    """Output and last inputs of torch.ops.attend_kernels.convolution."""
    tokens, width = input.shape[1], weight.shape[1]
    before = input.new_zeros(input.shape[0], width - 1, input.shape[2]) if state is None else state
    whole = torch.cat([before, input], 1)
    total = input.new_zeros(input.shape[2]) if bias is None else bias
    for w in range(width):
        total = total + weight[:, w] * whole[:, w:w + tokens]
    if silu:
        total = total * total.sigmoid()
    return total, whole[:, tokens:]
