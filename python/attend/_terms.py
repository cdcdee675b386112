"""Terms of a bias as tensors of all pairs, and the mask of a scope: for second derivatives and repeated terms."""

from __future__ import annotations

import torch
from torch import Tensor

from . import scopes


def dense_of_slopes(slopes: Tensor, offset: int, queries: int, keys: int) -> Tensor:
    i = torch.arange(queries, device=slopes.device).unsqueeze(1)
    j = torch.arange(keys, device=slopes.device)
    return -slopes.view(1, -1, 1, 1) * (j - i - offset).abs().to(slopes.dtype)


def dense_of_relative(relative: Tensor, offset: int, query_positions: Tensor | None, key_positions: Tensor | None,
                      queries: int, keys: int) -> Tensor:
    i = torch.arange(queries, device=relative.device) if query_positions is None else query_positions
    j = torch.arange(keys, device=relative.device) if key_positions is None else key_positions
    place = (j - i.unsqueeze(1) + offset).clamp(0, relative.shape[3] - 1)
    if relative.shape[2] == 1:
        return relative.select(2, 0).index_select(-1, place.flatten()).view(*relative.shape[:2], queries, keys)
    return relative.gather(-1, place.expand(*relative.shape[:2], queries, keys))


def dense_of_gaussian(centres: Tensor, widths: Tensor, keys: int) -> Tensor:
    j = torch.arange(keys, dtype=centres.dtype, device=centres.device)
    return -((j - centres.unsqueeze(-1)) / widths.unsqueeze(-1)).square() / 2


class _Reader:
    def __init__(self, numbers: list[int], tensors: list[Tensor | None]) -> None:
        self.numbers, self.tensors, self.next = numbers, tensors, 0

    def ended(self) -> bool:
        return self.next == len(self.numbers)

    def number(self) -> int:
        self.next += 1
        return self.numbers[self.next - 1]

    def tensor(self) -> Tensor | None:
        index = self.number()
        return None if index == -1 else self.tensors[index]


def edge_pairs(offsets: Tensor, count: int) -> Tensor:
    """The query of each edge of one list, int64 [edges of the list]; `count` is the number of queries."""
    lengths = offsets[1:] - offsets[:-1]
    return torch.repeat_interleave(torch.arange(count, device=offsets.device), lengths)


def _edge_mask(offsets: Tensor, keys: Tensor, queries: int, count: int) -> Tensor:
    batch, heads = offsets.shape[:2]
    allowed = torch.zeros(batch, heads, queries, count, dtype=torch.bool)
    for b in range(batch):
        for h in range(heads):
            own = offsets[b, h]
            allowed[b, h][edge_pairs(own, queries), keys[own[0]:own[-1]]] = True
    return allowed


def _segment_mask(query_starts: Tensor, key_starts: Tensor, i: Tensor, j: Tensor) -> Tensor:
    row = torch.searchsorted(query_starts, i, right=True)
    column = torch.searchsorted(key_starts, j, right=True)
    inside = (row > 0) & (row < query_starts.shape[0])
    return (row == column) & inside


def _condition_mask(code: int, read: _Reader, i: Tensor, j: Tensor) -> Tensor:
    """i: [queries, 1], j: [1, keys]; the result broadcasts to [batch, heads, queries, keys]."""
    if code == scopes.WINDOW:
        left, right, offset, dilation = (read.number() for _ in range(4))
        offsets = read.tensor()
        own = 0 if offsets is None else offsets.view(-1, 1, 1, 1)
        distance = j - i - offset - own
        return (distance >= -left) & (distance <= right) & (distance % dilation == 0)
    if code in (scopes.KEY_LENGTHS, scopes.QUERY_LENGTHS):
        lengths = read.tensor()
        assert lengths is not None
        return (j if code == scopes.KEY_LENGTHS else i) < lengths.view(-1, 1, 1, 1)
    if code == scopes.PREFIX:
        return j < read.number()
    if code == scopes.GLOBAL_ROWS:
        return i < read.number()
    first = read.tensor()
    assert first is not None
    if code == scopes.SEGMENTS:
        second = read.tensor()
        assert second is not None
        return _segment_mask(first, second, i.contiguous(), j.contiguous())
    if code == scopes.BLOCKS:
        block = read.number()
        read.number(), read.number()  # positions of the first query and key: 0
        row, column = (i // block).flatten(), (j // block).flatten()
        known = column < first.shape[-1]
        return first[:, :, row][..., column.clamp_max(first.shape[-1] - 1)] & known
    if code == scopes.MASK:
        return first
    if code == scopes.AROUND:
        return (j - first.unsqueeze(-1)).abs() <= read.number()
    second = read.tensor()
    assert second is not None
    return _edge_mask(first, second, i.shape[0], j.shape[1])


def scope_mask(numbers: list[int], tensors: list[Tensor | None], queries: int, keys: int) -> Tensor | None:
    """True: query i may attend to key j; broadcasts to [batch, heads, queries, keys]. None: every key."""
    if not numbers:
        return None
    i, j = torch.arange(queries).unsqueeze(1), torch.arange(keys).unsqueeze(0)
    read = _Reader(numbers, tensors)
    union = None
    while not read.ended():
        clause = torch.ones(1, 1, queries, keys, dtype=torch.bool)
        while (code := read.number()) != scopes.END:
            clause = clause & _condition_mask(code, read, i, j)
        union = clause if union is None else union | clause
    return union
