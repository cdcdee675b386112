"""The mathematics of the kernels by tensor operations: it computes second derivatives."""

from __future__ import annotations

import torch
from torch import Tensor

from . import normalisers, scopes, scores
from ._checks import arithmetic
from ._terms import dense_of_gaussian, dense_of_relative, dense_of_slopes, edge_pairs, scope_mask

INFINITY = float("inf")


def _repeated(x: Tensor, heads: int) -> Tensor:
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def _activated(x: Tensor, activation: int, slope: float) -> Tensor:
    if activation == scores.TANH:
        return x.tanh()
    if activation == scores.SIGMOID:
        return x.sigmoid()
    if activation == scores.RELU:
        return x.relu()
    return torch.nn.functional.leaky_relu(x, slope)


def _pair_scores(q: Tensor, k: Tensor, vector: Tensor | None, choices: list[int], numbers: list[float]) -> Tensor:
    family = choices[0]
    if family == scores.DOT:
        return q @ k.transpose(-2, -1)
    if family == scores.ADDITIVE:
        assert vector is not None
        hidden = _activated(q.unsqueeze(-2) + k.unsqueeze(-3), choices[1], numbers[2])
        v = vector if vector.dim() == 1 else vector.view(-1, 1, 1, vector.shape[-1])
        return (hidden * v).sum(-1)
    difference = q.unsqueeze(-2) - k.unsqueeze(-3)
    return -(difference.square() if family == scores.SQUARED_DISTANCE else difference.abs()).sum(-1)


def _edge_bias(edges: Tensor, numbers: list[int], tensors: list[Tensor | None], like: Tensor) -> Tensor:
    code = numbers.index(scopes.EDGES)
    offsets, keys = tensors[numbers[code + 1]], tensors[numbers[code + 2]]
    batch, heads, queries, count = like.shape
    rows = []
    for b in range(batch):
        for h in range(heads):
            own = offsets[b % offsets.shape[0], h % offsets.shape[1]]
            bias = edges[b % edges.shape[0], h % edges.shape[1], 0]
            place = edge_pairs(own, queries) * count + keys[own[0]:own[-1]]
            rows.append(torch.zeros(queries * count, dtype=like.dtype).index_add(0, place, bias[: place.shape[0]]))
    return torch.stack(rows).view(batch, heads, queries, count)


def _sparse_support(shifted: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    ordered = shifted.detach().sort(-1, descending=True).values
    last = (size - 1).clamp_min(0)
    without = shifted.detach() < ordered.gather(-1, last)
    return without, (shifted.shape[-1] - without.sum(-1, keepdim=True)).to(shifted.dtype)


def _sparsemax(x: Tensor) -> tuple[Tensor, Tensor]:
    top = x.detach().amax(-1, keepdim=True)
    ordered = (x.detach().sort(-1, descending=True).values - top).clamp_min(-4.0)
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    without, size = _sparse_support(x, (k * ordered + 1 > ordered.cumsum(-1)).sum(-1, keepdim=True))
    moved = (x - top).masked_fill(without, 0.0)
    threshold = (moved.sum(-1, keepdim=True) - 1) / size
    return (moved - threshold).masked_fill(without, 0.0), (threshold + top).squeeze(-1)


def _entmax15(x: Tensor) -> tuple[Tensor, Tensor]:
    top = x.detach().amax(-1, keepdim=True)
    ordered = (x.detach().sort(-1, descending=True).values - top).clamp_min(-4.0) / 2
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    mean = ordered.cumsum(-1) / k
    spread = ordered.square().cumsum(-1) - k * mean.square()
    counted = (mean - ((1 - spread) / k).clamp_min(0.0).sqrt() <= ordered).sum(-1, keepdim=True)
    without, size = _sparse_support(x, counted)
    z = (x - top).masked_fill(without, 0.0) / 2
    centre = z.sum(-1, keepdim=True) / size
    variance = (z - centre).masked_fill(without, 0.0).square().sum(-1, keepdim=True)
    threshold = centre - ((1 - variance) / size).sqrt()
    return (z - threshold).masked_fill(without, 0.0).square(), (2 * threshold + top).squeeze(-1)


def _normalised(x: Tensor, code: int, sinks: Tensor | None, empty: Tensor) -> tuple[Tensor, Tensor]:
    """Weights and the normaliser of each row, from scores that are -inf outside the scope."""
    if code == normalisers.SIGMOID:
        return x.sigmoid(), torch.zeros_like(x[..., :1]).sum(-1)
    if code == normalisers.NONE:
        return x.masked_fill(x == -INFINITY, 0.0), torch.zeros_like(x[..., :1]).sum(-1)
    if sinks is not None:
        column = sinks.view(1, -1, 1, 1).expand(*x.shape[:3], 1)
        whole = torch.cat([x, column], -1)
        return whole.softmax(-1)[..., :-1], whole.logsumexp(-1)
    finite = x.masked_fill(empty, 0.0)
    if code == normalisers.SOFTMAX:
        return finite.softmax(-1), finite.logsumexp(-1)
    return _sparsemax(finite) if code == normalisers.SPARSEMAX else _entmax15(finite)


def composed_attention(query: Tensor, key: Tensor, value: Tensor, vector: Tensor | None, dense: Tensor | None,
                       slopes: Tensor | None, sinks: Tensor | None, relative: Tensor | None, centres: Tensor | None,
                       widths: Tensor | None, edges: Tensor | None, query_positions: Tensor | None,
                       key_positions: Tensor | None, tensors: list[Tensor | None], scope: list[int], choices: list[int],
                       numbers: list[float]) -> tuple[Tensor, Tensor]:
    """Context and lse of torch.ops.attend_kernels.attention, differentiable any number of times."""
    kept = arithmetic(query.dtype)
    heads, queries, keys = query.shape[1], query.shape[2], key.shape[2]
    q, k, v = query.to(kept), _repeated(key.to(kept), heads), _repeated(value.to(kept), heads)
    scale, cap, _, dropout = numbers
    x = _pair_scores(q, k, vector, choices, numbers) * scale
    if cap > 0:
        x = (x / cap).tanh() * cap
    if dense is not None:
        x = x + dense
    if slopes is not None:
        x = x + dense_of_slopes(slopes, choices[4], queries, keys)
    if relative is not None:
        x = x + dense_of_relative(relative, choices[5], query_positions, key_positions, queries, keys)
    if centres is not None and widths is not None:
        x = x + dense_of_gaussian(centres, widths, keys)
    if edges is not None:
        x = x + _edge_bias(edges, scope, tensors, x)
    allowed = scope_mask(scope, tensors, queries, keys)
    if allowed is not None:
        x = x.masked_fill(~allowed, -INFINITY)
    empty = (x == -INFINITY).all(-1, keepdim=True)
    weights, lse = _normalised(x, choices[2], sinks, empty)
    weights = weights.masked_fill(empty, 0.0)
    if sinks is None:
        lse = lse.masked_fill(empty.squeeze(-1), -INFINITY)
    if dropout > 0:
        weights = weights * torch.ops.attend_kernels.dropout_mask(weights.detach(), query.shape[0], heads, queries,
                                                                  keys, dropout, choices[3])
    return (weights @ v).to(query.dtype), lse
