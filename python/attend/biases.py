"""Biases: terms added to the scores, named as in docs/mechanisms.md. Terms are combined by ``+``; every tensor has a
gradient without a tensor of all pairs (except dense())."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ._checks import check_broadcast, check_parameter, check_tensor, shape

if TYPE_CHECKING:
    from ._lower import Parts

Term = Callable[["Parts"], None]


@dataclass(frozen=True, eq=False)
class Bias:
    """Terms added to the scores. Made by the functions of this module."""

    terms: tuple[Term, ...] = ()

    def __add__(self, other: Bias) -> Bias:
        return Bias(self.terms + other.terms)


def _one(term: Term) -> Bias:
    return Bias((term,))


def _with_heads(x: Tensor, axes: int, own: int) -> Tensor:
    if axes == 3 and x.dim() == own + 1:
        x = x.unsqueeze(1)
    while x.dim() < own + 2:
        x = x.unsqueeze(0)
    return x


def dense(bias: Tensor) -> Bias:
    """One number per pair; broadcasts to [batch, heads, queries, keys], for queries of three axes to [batch, queries,
    keys]. An axis of 1 is read in place and its gradient is summed."""
    check_tensor("dense bias", bias)

    def term(parts: Parts) -> None:
        own = _with_heads(check_parameter("dense bias", bias, parts.query), parts.extent.axes, 2)
        e = parts.extent
        check_broadcast("dense bias", own, [e.batch, e.heads, e.queries, e.keys])
        parts.add_dense(own)

    return _one(term)


def offset(number: Tensor) -> Bias:
    """A number per head, or one number, added to every score."""
    check_tensor("offset", number)

    def term(parts: Parts) -> None:
        parts.add_dense(parts.per_head("offset", number).view(1, -1, 1, 1))

    return _one(term)


def alibi(slopes: Tensor, offset: int = 0) -> Bias:
    """-slopes[h] |i + offset - j| (Press et al. 2022). slopes: [heads] or one number."""
    check_tensor("slopes of alibi", slopes)

    def term(parts: Parts) -> None:
        parts.add_slopes(parts.per_head("slopes of alibi", slopes), offset)

    return _one(term)


def alibi_slopes(heads: int) -> Tensor:
    """Slopes of Press et al. 2022: 2^(-8 h / heads) for a power of two, otherwise the slopes of the next lower power
    and every other slope of the next higher power. float32 [heads]."""
    if heads < 1:
        raise ValueError(f"heads is {heads}; it must be 1 or more")
    power = 1 << (heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * h / power) for h in range(1, power + 1)]
    slopes += [2.0 ** (-8 * (2 * h - 1) / (2 * power)) for h in range(1, heads - power + 1)]
    return torch.tensor(slopes, dtype=torch.float32)


def distance_buckets(distance: Tensor, count: int, bidirectional: bool = True,
                     maximum_distance: int = 128) -> Tensor:
    """Bucket of each distance j - i, int64 (Raffel et al. 2020, 2.1)."""
    own = count // 2 if bidirectional else count
    exact = own // 2
    if exact < 1 or maximum_distance <= exact:
        raise ValueError(f"{count} buckets to a maximum distance of {maximum_distance}; there must be "
                         f"{4 if bidirectional else 2} or more, and a maximum distance above {exact}")
    far = distance.abs() if bidirectional else (-distance).clamp_min(0)
    # float32 as in the published models: rounding at the boundaries is part of their behaviour.
    grown = (far.clamp_min(1).float() / exact).log() / math.log(maximum_distance / exact) * (own - exact)
    bucket = torch.where(far < exact, far, (grown.long() + exact).clamp_max(own - 1))
    return bucket + (distance > 0).long() * own if bidirectional else bucket


def buckets(table: Tensor, *, bidirectional: bool = True, maximum_distance: int = 128, offset: int = 0) -> Bias:
    """table[h, bucket(j - i - offset)] (Raffel et al. 2020). table: [heads, buckets] or [buckets]."""
    check_tensor("table of buckets", table)

    def term(parts: Parts) -> None:
        e = parts.extent
        own = check_parameter("table of buckets", table, parts.query)
        if own.dim() not in (1, 2) or (own.dim() == 2 and own.shape[0] != e.heads):
            raise ValueError(f"table of buckets has shape {shape(own)}; it must have shape [buckets] or [{e.heads}, "
                             "buckets]")
        last = max(e.queries, 1) - 1
        distance = torch.arange(last + max(e.keys, 1), device=own.device) - last - offset
        bucket = distance_buckets(distance, own.shape[-1], bidirectional, maximum_distance)
        parts.add_relative(own.index_select(-1, bucket).view(1, -1, 1, bucket.shape[0]), last)

    return _one(term)


def relative_keys(table: Tensor, offset: int = 0) -> Bias:
    """scale q_i . table[clip(j - i - offset, -L, L) + L] (Shaw et al. 2018, eq. 4). table: [2 L + 1, depth], or after
    an axis of heads."""
    check_tensor("table of relative keys", table)

    def term(parts: Parts) -> None:
        own = check_parameter("table of relative keys", table, parts.query)
        query = parts.mapped_query.to(own.dtype)
        fits = own.dim() == 2 or (own.dim() == 3 and own.shape[0] == parts.extent.heads)
        if not fits or own.shape[-1] != query.shape[-1] or own.shape[-2] % 2 == 0:
            raise ValueError(f"table of relative keys has shape {shape(own)}; it must have shape [2 L + 1, "
                             f"{query.shape[-1]}] or that after an axis of {parts.extent.heads} heads")
        parts.add_relative((query * parts.scale) @ own.transpose(-2, -1), (own.shape[-2] - 1) // 2 - offset)

    return _one(term)


def gaussian(centres: Tensor, widths: Tensor) -> Bias:
    """-(j - centres_i)^2 / (2 widths_i^2) (Luong et al. 2015, eq. 10). Both broadcast to [batch, heads, queries];
    widths must be positive, and are raised to 2e-13 (float64: 3e-103)."""
    check_tensor("centres", centres)
    check_tensor("widths", widths)

    def term(parts: Parts) -> None:
        e = parts.extent
        sizes = [e.batch, e.heads, e.queries]
        found = []
        for name, given in (("centres", centres), ("widths", widths)):
            own = _with_heads(check_parameter(name, given, parts.query), e.axes, 1)
            check_broadcast(name, own, sizes)
            found.append(own.expand(sizes))
        least = torch.finfo(found[1].dtype).tiny ** (1 / 3)
        parts.add_gaussian(found[0], found[1].clamp_min(least))

    return _one(term)


def grid(table: Tensor) -> Bias:
    """table[h, y_j - y_i + height - 1, x_j - x_i + width - 1] on a grid, position y width + x (Liu et al. 2021, eq.
    4). table: [heads, 2 height - 1, 2 width - 1], or without heads."""
    check_tensor("table of the grid", table)

    def term(parts: Parts) -> None:
        e = parts.extent
        own = check_parameter("table of the grid", table, parts.query)
        shaped = own.dim() == 2 or (own.dim() == 3 and own.shape[0] == e.heads)
        height, width = ((own.shape[-2] + 1) // 2, (own.shape[-1] + 1) // 2) if shaped else (0, 0)
        odd = shaped and own.shape[-2] % 2 == 1 and own.shape[-1] % 2 == 1
        if not odd or height * width < max(e.queries, e.keys):
            raise ValueError(f"table of the grid has shape {shape(own)}; it must have shape [2 height - 1, 2 width - 1] "
                             f"or that after an axis of {e.heads} heads, with {max(e.queries, e.keys)} cells or more")
        place = torch.arange(height * width, device=own.device)
        position = place // width * (2 * width - 1) + place % width
        parts.add_relative(own.reshape(1, -1, 1, (2 * height - 1) * (2 * width - 1)),
                           (height - 1) * (2 * width - 1) + width - 1, position[: e.queries], position[: e.keys])

    return _one(term)


def edges(bias: Tensor) -> Bias:
    """One number per edge of a scope of edges, in the order of its keys. [edges], or after axes of batch and heads;
    axes of 1 broadcast."""
    check_tensor("bias of edges", bias)

    def term(parts: Parts) -> None:
        own = _with_heads(check_parameter("bias of edges", bias, parts.query), parts.extent.axes, 1)
        check_broadcast("bias of edges", own, [parts.extent.batch, parts.extent.heads, own.shape[-1]])
        parts.add_edges(own.unsqueeze(2))

    return _one(term)


def bias(given: object) -> Bias:
    """A bias from a Bias, None, or a tensor, which is a dense one."""
    if given is None:
        return Bias()
    if isinstance(given, Bias):
        return given
    if isinstance(given, Tensor):
        if given.dtype == torch.bool:
            raise ValueError("bias is a bool tensor; a mask is given as scope=, True: attend")
        return dense(given)
    raise ValueError(f"bias is {given!r}; it must be a bias of attend.biases or a tensor")
