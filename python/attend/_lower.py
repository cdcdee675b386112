"""Attention in the form of the kernels: from the choices of a call to the arguments of an operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from . import biases, normalisers, scopes, scores
from ._checks import arithmetic, check_parameter, check_stored, shape, without_autocast
from ._terms import dense_of_gaussian, dense_of_relative, dense_of_slopes
from .scopes import Extent

PARTS = ("query", "key", "value", "vector", "dense", "slopes", "sinks", "relative", "centres", "widths", "edges")
LEAKY_SLOPE = 0.2


@dataclass
class Parts:
    """Arguments of the operators. Biases add themselves to it."""

    extent: Extent
    query: Tensor  # the caller's query, which fixes the dtypes
    mapped_query: Tensor
    scale: float
    tensors: dict[str, Tensor] = field(default_factory=dict)
    slope_offset: int = 0
    relative_offset: int = 0
    query_positions: Tensor | None = None
    key_positions: Tensor | None = None

    def per_head(self, name: str, given: Tensor) -> Tensor:
        own = check_parameter(name, given, self.query)
        if own.numel() == 1:
            return own.reshape(1).expand(self.extent.heads)
        if tuple(own.shape) != (self.extent.heads,):
            raise ValueError(f"{name} has shape {shape(own)}; it must have shape [{self.extent.heads}] or be one number")
        return own

    def _add(self, name: str, x: Tensor) -> None:
        self.tensors[name] = self.tensors[name] + x if name in self.tensors else x

    def add_dense(self, x: Tensor) -> None:
        self._add("dense", x.expand(*x.shape[:3], self.extent.keys))

    def add_slopes(self, slopes: Tensor, offset: int) -> None:
        if "slopes" in self.tensors and offset != self.slope_offset:
            self.add_dense(dense_of_slopes(slopes, offset, self.extent.queries, self.extent.keys))
            return
        self._add("slopes", slopes)
        self.slope_offset = offset

    def add_relative(self, relative: Tensor, offset: int, query_positions: Tensor | None = None,
                     key_positions: Tensor | None = None) -> None:
        if "relative" in self.tensors:
            self.add_dense(dense_of_relative(relative, offset, query_positions, key_positions, self.extent.queries,
                                             self.extent.keys))
            return
        self.tensors["relative"] = relative
        self.relative_offset = offset
        self.query_positions, self.key_positions = query_positions, key_positions

    def add_gaussian(self, centres: Tensor, widths: Tensor) -> None:
        if "centres" in self.tensors:
            self.add_dense(dense_of_gaussian(centres, widths, self.extent.keys))
            return
        self.tensors["centres"], self.tensors["widths"] = centres, widths

    def add_edges(self, x: Tensor) -> None:
        self._add("edges", x)

    def fold_temperature(self, t: float) -> None:
        """softmax(s / t) is the softmax of scores with every part divided by t."""
        for name in ("dense", "slopes", "relative", "sinks", "edges"):
            if name in self.tensors:
                self.tensors[name] = self.tensors[name] / t
        if "widths" in self.tensors:
            self.tensors["widths"] = self.tensors["widths"] * t**0.5


class Call(NamedTuple):
    """The arguments of the operators of attention, and the shape of their results."""

    arguments: tuple  # arguments of torch.ops.attend_kernels.attention
    extent: Extent
    dtype: torch.dtype  # dtype of the caller's queries

    def shaped(self, x: Tensor) -> Tensor:
        """A result [batch, heads, ...] with the axes of the caller's queries."""
        if self.extent.axes == 4:
            return x
        x = x.squeeze(1)
        return x if self.extent.axes == 3 else x.squeeze(0)


def _four_axes(x: Tensor) -> Tensor:
    if x.dim() == 4:
        return x
    return x.unsqueeze(1) if x.dim() == 3 else x.unsqueeze(0).unsqueeze(0)


def _autocast(*given: Tensor) -> tuple[Tensor, ...]:
    wanted = torch.get_autocast_dtype("cpu")
    return tuple(x.to(wanted) if x.dtype in (torch.float32, torch.bfloat16, torch.float16) else x for x in given)


def check_rows(query: Tensor, key: Tensor, value: Tensor) -> None:
    """ValueError unless the three fit each other."""
    axes, device, dtype = query.dim(), query.device, query.dtype
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != axes or axes not in (2, 3, 4):
            raise ValueError(f"{name} has shape {shape(x)}, query {shape(query)}; all must have 2, 3 or 4 axes, the "
                             "same number")
        if x.device != device:
            raise RuntimeError(f"{name} is on {x.device}, query on {device}; they must match")
        if x.dtype != dtype:
            raise ValueError(f"{name} has dtype {x.dtype}, query {dtype}; they must match")
    # Sizes are read once, since each reading takes as long as the comparison.
    q, k = query.shape, key.shape
    for name, sizes in (("query", q), ("key", k)):
        if sizes[-1] == 0:
            raise ValueError(f"{name} has shape {list(sizes)}; its depth, the last axis, must be 1 or more")
    if axes >= 3 and k[0] != q[0]:
        raise ValueError(f"key has batch {k[0]}, query {q[0]}; they must match")
    if axes == 4 and (k[1] == 0 or q[1] == 0 or q[1] % k[1] != 0):
        raise ValueError(f"key has {k[1]} heads, query {q[1]}; the first must divide the second")
    if value.shape[:-1] != k[:-1]:
        raise ValueError(f"value has shape {shape(value)}, key {shape(key)}; all axes but the last must match")


def _heads_of(parameters: scores.Parameters, score: scores.Score) -> int | None:
    if not parameters:
        return None
    own = {"W": 2, "W_q": 2, "W_k": 2, "v": 1, "b": 1, "w_q": 1, "w_k": 1, "beta": 0}
    if score.name == "linear":
        own["b"] = 0
    for name, x in parameters.items():
        if x.dim() > own[name]:
            return x.shape[0]
    return None


def _mapped(score: scores.Score, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Queries, keys and values for the family, and its vector. Mapped inputs are not rounded to 16 bits again."""
    parameters = score.converted(q)
    heads = _heads_of(parameters, score)
    if heads is not None and heads != q.shape[1]:
        raise ValueError(f"the parameters of score {score.name} have {heads} heads, query {q.shape[1]}; they must match")
    if score.map_query or score.map_key:
        kept = arithmetic(q.dtype)
        if heads is not None and k.shape[1] != q.shape[1]:
            k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
            v = v.repeat_interleave(q.shape[1] // v.shape[1], 1)
        q, k, v = q.to(kept), k.to(kept), v.to(kept)
        q = score.map_query(q, parameters) if score.map_query else q
        k = score.map_key(k, parameters) if score.map_key else k
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"query has depth {q.shape[-1]}, key {k.shape[-1]}, and score {score.name} compares them; "
                         "they must match")
    vector = parameters.get("v")
    if vector is not None and vector.shape[-1] != q.shape[-1]:
        raise ValueError(f"v of score {score.name} has depth {vector.shape[-1]}, the mapped query {q.shape[-1]}; they "
                         "must match")
    return q, k, v, vector


def _check_numbers(soft_cap: float, dropout: float) -> None:
    if not 0 <= soft_cap < float("inf"):
        raise ValueError(f"soft_cap is {soft_cap}; it must be positive, or 0 for none")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; it must be at least 0 and below 1")


def lower(query: Tensor, key: Tensor, value: Tensor, *, score: object, scope: object, bias: object,
          normaliser: object, key_lengths: Tensor | None, sink: Tensor | None, soft_cap: float, dropout: float,
          seed: int) -> Call:
    """Checks the choices and returns the arguments of the operators."""
    chosen_score, chosen_normaliser = scores.score(score), normalisers.normaliser(normaliser)
    chosen_scope, chosen_bias = scopes.scope(scope), biases.bias(bias)
    if key_lengths is not None:
        chosen_scope = chosen_scope & scopes.key_lengths(key_lengths)
    for name, x in (("query", query), ("key", key), ("value", value)):
        check_stored(name, x)
    if torch.is_autocast_enabled("cpu"):
        query, key, value = _autocast(query, key, value)
    check_rows(query, key, value)
    _check_numbers(soft_cap, dropout)
    axes = query.dim()
    dtype = query.dtype
    with without_autocast():
        q, k, v, vector = _mapped(chosen_score, _four_axes(query), _four_axes(key), _four_axes(value))
        batch, heads, queries, _ = q.shape
        extent = Extent(batch, heads, queries, k.shape[2], axes)
        scale = query.shape[-1]**-0.5 if chosen_score.scale is None else chosen_score.scale
        parts = Parts(extent, query, q, scale)
        for term in chosen_bias.terms:
            term(parts)
        if sink is not None:
            if chosen_normaliser.code != normalisers.SOFTMAX:
                raise ValueError(f"sink is given with normaliser {chosen_normaliser.name}; only softmax has one")
            parts.tensors["sinks"] = parts.per_head("sink", sink)
        t = chosen_normaliser.temperature
        if t != 1:
            parts.fold_temperature(t)
    codes = chosen_scope.encoded(extent)
    choices = [chosen_score.family, chosen_score.activation, chosen_normaliser.code, seed, parts.slope_offset,
               parts.relative_offset]
    numbers = [scale / t, soft_cap / t, LEAKY_SLOPE, float(dropout)]
    own = parts.tensors
    arguments = (q, k, v, vector, *(own.get(name) for name in PARTS[4:]), parts.query_positions, parts.key_positions,
                 *codes.tensors, codes.numbers, choices, numbers)
    return Call(arguments, extent, dtype)
