"""Scopes: the keys that a query may attend to.

A scope is a union of clauses, a clause an intersection of conditions. Scopes intersect by ``&`` and unite by ``|``:
``causal() & (window(128) | global_tokens(4))``. In every mask, True means: attend. A query that sees no key has
context 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._checks import check_broadcast, check_count, check_integers, check_no_gradient, check_tensor, shape

UNBOUNDED = (2**63 - 1) // 4
SCOPE_TENSORS = 8  # maximum per call

# First numbers of the conditions; shim/attention_call.h says what follows each.
END, WINDOW, KEY_LENGTHS, QUERY_LENGTHS, PREFIX, GLOBAL_ROWS, SEGMENTS, BLOCKS, MASK, AROUND, EDGES = range(-1, 10)


class Extent(NamedTuple):
    """Sizes of a call: batch entries, heads, queries and keys, and the number of axes of the queries."""

    batch: int
    heads: int
    queries: int
    keys: int
    axes: int


class Codes:
    """Numbers and tensors of a scope, as the kernels read them."""

    def __init__(self, extent: Extent) -> None:
        self.extent = extent
        self.numbers: list[int] = []
        self.tensors: list[Tensor | None] = []

    def tensor(self, x: Tensor) -> int:
        self.tensors.append(x)
        return len(self.tensors) - 1


Condition = Callable[[Codes], None]


@dataclass(frozen=True, eq=False)
class Scope:
    """Which keys each query may attend to; without clauses every key. Made by the functions of this module."""

    clauses: tuple[tuple[Condition, ...], ...] = ()

    def __and__(self, other: Scope) -> Scope:
        if not self.clauses or not other.clauses:
            return self if not other.clauses else other
        return Scope(tuple(a + b for a in self.clauses for b in other.clauses))

    def __or__(self, other: Scope) -> Scope:
        if not self.clauses or not other.clauses:
            return Scope()
        return Scope(self.clauses + other.clauses)

    def encoded(self, extent: Extent) -> Codes:
        codes = Codes(extent)
        for clause in self.clauses:
            for condition in clause:
                condition(codes)
            codes.numbers.append(END)
        if len(codes.tensors) > SCOPE_TENSORS:
            raise ValueError(f"scope has {len(codes.tensors)} tensors; at most {SCOPE_TENSORS} are supported: combine "
                             "masks into one")
        codes.tensors += [None] * (SCOPE_TENSORS - len(codes.tensors))
        return codes


def _one(condition: Condition) -> Scope:
    return Scope(((condition,),))


def all_keys() -> Scope:
    """Every key."""
    return Scope()


def window(left: int, right: int | None = None, *, offset: int = 0, dilation: int = 1,
           offsets: Tensor | None = None) -> Scope:
    """Keys j with i + offset - left <= j <= i + offset + right, such that dilation divides j - i - offset.

    ``right`` is by default ``left``. ``offsets``, int64 [batch], are added to the offset. ValueError on a negative
    reach or a dilation below 1. Source: Beltagy et al. 2020.
    """
    check_count("left", left)
    right = left if right is None else check_count("right", right)
    check_count("dilation", dilation, 1)

    def condition(codes: Codes) -> None:
        index = -1
        if offsets is not None:
            index = codes.tensor(check_integers("offsets", offsets, [codes.extent.batch]))
        codes.numbers += [WINDOW, min(left, UNBOUNDED), min(right, UNBOUNDED), offset, dilation, index]

    return _one(condition)


def causal(offset: int = 0, *, offsets: Tensor | None = None) -> Scope:
    """Keys j <= i + offset. If the queries are the last positions of the keys: offset = keys - queries."""
    return window(UNBOUNDED, 0, offset=offset, offsets=offsets)


def dilated(reach: int, dilation: int) -> Scope:
    """Keys within the reach, at distances that are multiples of the dilation (Beltagy et al. 2020)."""
    return window(reach, dilation=dilation)


def key_lengths(lengths: Tensor) -> Scope:
    """Keys j < lengths[b]: batches padded on the right. int64 [batch], 0 to the number of keys."""
    check_integers("key_lengths", lengths)

    def condition(codes: Codes) -> None:
        own = check_integers("key_lengths", lengths, [codes.extent.batch])
        codes.numbers += [KEY_LENGTHS, codes.tensor(own)]

    return _one(condition)


def key_starts(starts: Tensor) -> Scope:
    """Keys j >= starts[b]: batches padded on the left. int64 [batch]."""
    check_integers("key_starts", starts)

    def condition(codes: Codes) -> None:
        e = codes.extent
        own = check_integers("key_starts", starts, [e.batch])
        # No key is further than `keys` from the key that is `keys` after the first one.
        centres = (own + e.keys).to(torch.float64).view(-1, 1, 1)
        codes.numbers += [AROUND, codes.tensor(centres), e.keys]

    return _one(condition)


def query_lengths(lengths: Tensor) -> Scope:
    """Queries i < lengths[b]; later queries see no key. int64 [batch]."""
    check_integers("query_lengths", lengths)

    def condition(codes: Codes) -> None:
        own = check_integers("query_lengths", lengths, [codes.extent.batch])
        codes.numbers += [QUERY_LENGTHS, codes.tensor(own)]

    return _one(condition)


def prefix(length: int) -> Scope:
    """Keys j < length, for every query."""
    check_count("length", length)
    return _one(lambda codes: codes.numbers.extend([PREFIX, length]))


def global_tokens(count: int) -> Scope:
    """The first keys, for every query, and every key for the first queries (Beltagy et al. 2020)."""
    check_count("count", count)
    return prefix(count) | _one(lambda codes: codes.numbers.extend([GLOBAL_ROWS, count]))


def segments(query_starts: Tensor, key_starts: Tensor | None = None) -> Scope:
    """Packed sequences: query i and key j are in the same segment. int64 [segments + 1], ascending (cu_seqlens)."""
    check_integers("query_starts", query_starts)

    def condition(codes: Codes) -> None:
        queries = check_integers("query_starts", query_starts)
        keys = queries if key_starts is None else check_integers("key_starts", key_starts, queries.shape)
        if queries.dim() != 1 or queries.numel() == 0:
            raise ValueError(f"query_starts has shape {shape(queries)}; it must have shape [segments + 1]")
        codes.numbers += [SEGMENTS, codes.tensor(queries), codes.tensor(keys)]

    return _one(condition)


def _check_mask(name: str, x: object) -> Tensor:
    tensor = check_tensor(name, x)
    check_no_gradient(name, tensor)
    if tensor.dtype != torch.bool:
        raise ValueError(f"{name} has dtype {tensor.dtype}; it must be bool, True: attend (numbers to add are "
                         "biases.dense)")
    return tensor


def _with_heads(x: Tensor, axes: int, own: int) -> Tensor:
    """The axes of batch and heads before the last `own` axes, for queries of `axes` axes."""
    if axes == 3 and x.dim() == own + 1:
        x = x.unsqueeze(1)
    while x.dim() < own + 2:
        x = x.unsqueeze(0)
    return x


def mask(allowed: Tensor) -> Scope:
    """True means: attend. bool, broadcasts to [batch, heads, queries, keys]; for queries of three axes to [batch,
    queries, keys]. ValueError unless bool and without a gradient."""
    _check_mask("mask", allowed)

    def condition(codes: Codes) -> None:
        e = codes.extent
        own = _with_heads(allowed, e.axes, 2)
        check_broadcast("mask", own, [e.batch, e.heads, e.queries, e.keys])
        codes.numbers += [MASK, codes.tensor(own)]

    return _one(condition)


def blocks(layout: Tensor, block: int) -> Scope:
    """layout[i // block, j // block] is True (Child et al. 2019). bool [query blocks, key blocks], or after axes of
    batch and heads; axes of 1 broadcast."""
    _check_mask("layout", layout)
    check_count("block", block, 1)

    def condition(codes: Codes) -> None:
        e = codes.extent
        own = _with_heads(layout, e.axes, 2).contiguous()
        check_broadcast("layout", own, [e.batch, e.heads, (e.queries + block - 1) // block, own.shape[-1]])
        codes.numbers += [BLOCKS, codes.tensor(own), block, 0, 0]

    return _one(condition)


def around(centres: Tensor, reach: int) -> Scope:
    """Keys at most ``reach`` from the centre of the query (Luong et al. 2015, local-p). Centres broadcast to [batch,
    heads, queries]; the scope gives them no gradient."""
    check_tensor("centres", centres)
    check_count("reach", reach)

    def condition(codes: Codes) -> None:
        e = codes.extent
        own = _with_heads(centres.detach().to(torch.float64), e.axes, 1).contiguous()
        check_broadcast("centres", own, [e.batch, e.heads, e.queries])
        codes.numbers += [AROUND, codes.tensor(own), reach]

    return _one(condition)


def edges(offsets: Tensor, keys: Tensor) -> Scope:
    """Edges of a graph: query i sees keys[n] for offsets[i] <= n < offsets[i + 1], ascending. int64 [queries + 1], or
    after axes of batch and heads, and int64 [edges]. Time and memory are linear in the edges."""
    check_integers("keys of the edges", keys)

    def condition(codes: Codes) -> None:
        e = codes.extent
        own = _with_heads(check_integers("offsets of the edges", offsets), e.axes, 1)
        check_broadcast("offsets of the edges", own, [e.batch, e.heads, e.queries + 1])
        codes.numbers += [EDGES, codes.tensor(own), codes.tensor(check_integers("keys of the edges", keys))]

    return _one(condition)


def scope(given: Any) -> Scope:
    """A scope from a Scope, None (every key), a bool tensor (a mask), "all" or "causal"."""
    if given is None or given == "all" if not isinstance(given, Tensor) else False:
        return Scope()
    if isinstance(given, Scope):
        return given
    if isinstance(given, Tensor):
        return mask(given)
    if given == "causal":
        return causal()
    raise ValueError(f"scope is {given!r}; it must be a scope of attend.scopes, a bool tensor, 'all' or 'causal'")
