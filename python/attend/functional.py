"""attention() and its weights on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload, Literal

import torch
from torch import Tensor

from ._checks import arithmetic, check_count, shape
from ._lower import Call, lower
from . import _operators
from ._operators import kernels
from .biases import Bias
from .normalisers import Normaliser
from .scopes import Scope
from .scores import Score

ScoreLike = Score | str
ScopeLike = Scope | Tensor | str | None
BiasLike = Bias | Tensor | None
NormaliserLike = Normaliser | str


def _seed(dropout: float, seed: int | None) -> int:
    if seed is not None:
        return check_count("seed", seed)
    return int(torch.randint(2**62, ()).item()) if dropout > 0 else 0


@overload
def attention(query: Tensor, key: Tensor, value: Tensor, *, score: ScoreLike = ..., scope: ScopeLike = ...,
              bias: BiasLike = ..., normaliser: NormaliserLike = ..., key_lengths: Tensor | None = ...,
              sink: Tensor | None = ..., soft_cap: float = ..., dropout: float = ..., seed: int | None = ...,
              return_lse: Literal[False] = ...) -> Tensor: ...


@overload
def attention(query: Tensor, key: Tensor, value: Tensor, *, score: ScoreLike = ..., scope: ScopeLike = ...,
              bias: BiasLike = ..., normaliser: NormaliserLike = ..., key_lengths: Tensor | None = ...,
              sink: Tensor | None = ..., soft_cap: float = ..., dropout: float = ..., seed: int | None = ...,
              return_lse: Literal[True]) -> tuple[Tensor, Tensor]: ...


def attention(query: Tensor, key: Tensor, value: Tensor, *, score: ScoreLike = "scaled_dot", scope: ScopeLike = None,
              bias: BiasLike = None, normaliser: NormaliserLike = "softmax", key_lengths: Tensor | None = None,
              sink: Tensor | None = None, soft_cap: float = 0.0, dropout: float = 0.0, seed: int | None = None,
              return_lse: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """Context vectors c_i = sum_j w_ij v_j; in every mask, True means: attend.

    w_ij = normaliser_j(score(q_i, k_j) + bias_ij) over the keys j in the scope of i, in memory linear in queries and
    keys, forward and backward. A query that sees no key has context 0 and lse -inf.

    Shapes: query [batch, heads, queries, depth], key [batch, key_heads, keys, depth], value [batch, key_heads, keys,
    value_depth]; heads / key_heads adjacent heads share keys and values. Axes of heads, or of batch and heads, may be
    missing from all three. dtypes: float32, float64, bfloat16, float16, on the CPU; the arithmetic is float32, or
    float64 for float64.

    score: a score of attend.scores, or "dot", "scaled_dot", "cosine", "squared_distance", "absolute_distance".
    scope: a scope of attend.scopes, a bool mask, "all" or "causal".
    bias: a bias of attend.biases, or a tensor that is added to the scores. It has a gradient.
    normaliser: a normaliser of attend.normalisers, or "softmax", "sigmoid", "none", "sparsemax", "entmax15".
    key_lengths: int64 [batch], the keys before the padding of each entry.
    sink: [heads], a learned score without a value in the softmax (Xiao et al. 2024).
    soft_cap: scores become cap tanh(score / cap) before the bias; 0: no cap.
    dropout: probability that a weight becomes 0; others are divided by 1 - dropout. seed: the seed of the
    draw, by default from torch's generator.

    Returns the context [batch, heads, queries, value_depth]; with return_lse also the natural logarithm of the sum
    of exp(score) per query (the threshold for sparsemax and entmax15, otherwise 0), [batch, heads, queries].

    Errors: ValueError with the name of the argument for wrong types, shapes and dtypes; RuntimeError for devices
    other than the CPU and for lengths, segments and edges outside the keys.

    Sources: Dao et al. 2022 (tiles), Bahdanau et al. 2015 (additive score).
    """
    call = lower(query, key, value, score=score, scope=scope, bias=bias, normaliser=normaliser,
                 key_lengths=key_lengths, sink=sink, soft_cap=soft_cap, dropout=dropout, seed=_seed(dropout, seed))
    context, lse = _operators.attention(*call.arguments)
    context = call.shaped(context)
    if context.dtype != call.dtype:
        context = context.to(call.dtype)
    return (context, call.shaped(lse)) if return_lse else context


def _selection(call: Call, heads: Sequence[int] | None, first_row: int, rows: int | None) -> tuple[list[int], int, int]:
    count = call.extent.queries - first_row if rows is None else rows
    check_count("first_row", first_row)
    check_count("rows", count)
    if first_row + count > call.extent.queries:
        raise ValueError(f"rows {first_row} to {first_row + count} are selected; there are {call.extent.queries} queries")
    for head in heads or ():
        if not 0 <= head < call.extent.heads:
            raise ValueError(f"heads has {head}; it must be from 0 to {call.extent.heads - 1}")
    return list(heads or ()), first_row, count


def _without_values(query: Tensor, key: Tensor, choices: dict) -> Call:
    with torch.no_grad():
        return lower(query.detach(), key.detach(), key.detach()[..., :0],
                     **{"score": "scaled_dot", "scope": None, "bias": None, "normaliser": "softmax",
                        "key_lengths": None, "sink": None, "soft_cap": 0.0, "dropout": 0.0, "seed": 0, **choices})


def _lse(call: Call, lse: Tensor | None) -> Tensor:
    if lse is None:
        return kernels.attention(*call.arguments, False)[1]
    e = call.extent
    wanted = (e.batch, e.heads, e.queries)[4 - e.axes:] if e.axes < 4 else (e.batch, e.heads, e.queries)
    if e.axes == 3:
        wanted = (e.batch, e.queries)
    kept = arithmetic(call.arguments[0].dtype)
    if tuple(lse.shape) != wanted or lse.dtype != kept:
        raise ValueError(f"lse is {lse.dtype} of shape {shape(lse)}; it must be {kept} of shape {list(wanted)}")
    return lse.detach().reshape(e.batch, e.heads, e.queries).contiguous()


@torch.no_grad()
def attention_weights(query: Tensor, key: Tensor, lse: Tensor | None = None, *, heads: Sequence[int] | None = None,
                      first_row: int = 0, rows: int | None = None, **choices: object) -> Tensor:
    """The weights w_ij of selected rows, without a gradient and before dropout.

    lse: the lse of attention(..., return_lse=True) with the same choices; None: it is computed first. heads: query heads, by
    default all; rows: number of queries from first_row on. choices: as in attention().

    Returns [batch, selected heads, rows, keys] (axes that the queries lack are missing); 0 outside the scope. Memory:
    only the result. Errors: as attention().
    """
    call = _without_values(query, key, choices)
    found = kernels.weights(*call.arguments, _lse(call, lse), *_selection(call, heads, first_row, rows))
    return call.shaped(found)


@torch.no_grad()
def top(query: Tensor, key: Tensor, count: int, lse: Tensor | None = None, *, heads: Sequence[int] | None = None,
        first_row: int = 0, rows: int | None = None, **choices: object) -> tuple[Tensor, Tensor]:
    """The `count` largest weights of each row and their keys, largest first: two tensors [batch, selected heads, rows,
    count]. Entries without a weight above 0 have weight 0 and key -1. Other arguments: as attention_weights()."""
    check_count("count", count, 1)
    call = _without_values(query, key, choices)
    found, keys = kernels.top(*call.arguments, _lse(call, lse), *_selection(call, heads, first_row, rows), count)
    return call.shaped(found), call.shaped(keys)


@torch.no_grad()
def entropy(query: Tensor, key: Tensor, lse: Tensor | None = None, *, heads: Sequence[int] | None = None,
            first_row: int = 0, rows: int | None = None, **choices: object) -> Tensor:
    """-sum_j w_ij ln w_ij of each row, in nats: [batch, selected heads, rows]. Arguments: as attention_weights()."""
    call = _without_values(query, key, choices)
    return call.shaped(kernels.entropy(*call.arguments, _lse(call, lse), *_selection(call, heads, first_row, rows)))


@torch.no_grad()
def column_sums(query: Tensor, key: Tensor, lse: Tensor | None = None, *, heads: Sequence[int] | None = None,
                first_row: int = 0, rows: int | None = None, **choices: object) -> Tensor:
    """sum_i w_ij over the selected rows: [batch, selected heads, keys]. Arguments: as attention_weights()."""
    call = _without_values(query, key, choices)
    return call.shaped(kernels.column_sums(*call.arguments, _lse(call, lse), *_selection(call, heads, first_row, rows)))
