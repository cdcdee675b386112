"""Modules with parameters: additive and multi-head attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from . import scores
from .functional import BiasLike, NormaliserLike, ScopeLike, attention, attention_weights


class AdditiveAttention(nn.Module):
    """Additive attention: v . tanh(W_q q + W_k k + b) (Bahdanau et al. 2015, A.1.2).

    query_depth, key_depth: sizes of queries and keys; depth: number of hidden units. bias: whether there is b.
    """

    def __init__(self, query_depth: int, key_depth: int, depth: int, *, bias: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(query_depth, depth, bias=bias)
        self.key = nn.Linear(key_depth, depth, bias=False)
        self.v = nn.Parameter(torch.empty(depth))
        nn.init.uniform_(self.v, -1 / math.sqrt(depth), 1 / math.sqrt(depth))

    def forward(self, query: Tensor, key: Tensor, value: Tensor | None = None, *, scope: ScopeLike = None,
                key_lengths: Tensor | None = None, normaliser: NormaliserLike = "softmax",
                bias: BiasLike = None) -> Tensor:
        """Contexts of query [batch, queries, query_depth] over key [batch, keys, key_depth] and value (None: the
        key). In a mask, True means: attend. Other arguments and errors: as attend.attention()."""
        mapped = self.query(query), self.key(key)
        return attention(*mapped, (key if value is None else value).to(mapped[0].dtype), score=scores.additive(self.v),
                         scope=scope, key_lengths=key_lengths, normaliser=normaliser, bias=bias)

    def weights(self, query: Tensor, key: Tensor, *, scope: ScopeLike = None, key_lengths: Tensor | None = None,
                normaliser: NormaliserLike = "softmax", bias: BiasLike = None) -> Tensor:
        """The weights [batch, queries, keys] of the same call, without a gradient."""
        return attention_weights(self.query(query), self.key(key), score=scores.additive(self.v), scope=scope,
                                 key_lengths=key_lengths, normaliser=normaliser, bias=bias)


class MultiHeadAttention(nn.Module):
    """Multi-head attention with projections of queries, keys, values and contexts (Vaswani et al. 2017, 3.2.2).

    width: size of inputs and outputs; heads divides it; key_heads divides heads (Ainslie et al. 2023): heads /
    key_heads adjacent heads share keys and values. dropout: the probability for weights, in training only.
    """

    def __init__(self, width: int, heads: int, *, key_heads: int | None = None, bias: bool = True,
                 dropout: float = 0.0) -> None:
        super().__init__()
        key_heads = heads if key_heads is None else key_heads
        if heads < 1 or width % heads != 0:
            raise ValueError(f"heads is {heads}; it must divide width, {width}")
        if key_heads < 1 or heads % key_heads != 0:
            raise ValueError(f"key_heads is {key_heads}; it must divide heads, {heads}")
        self.heads, self.key_heads, self.depth, self.dropout = heads, key_heads, width // heads, dropout
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, key_heads * self.depth, bias=bias)
        self.value = nn.Linear(width, key_heads * self.depth, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.depth)).transpose(1, 2)

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, *,
                scope: ScopeLike = None, key_lengths: Tensor | None = None, bias: BiasLike = None,
                normaliser: NormaliserLike = "softmax") -> Tensor:
        """Outputs [batch, queries, width] of query [batch, queries, width] over key and value [batch, keys, width];
        None: the query, and the key. In a mask, True means: attend. Errors: as attend.attention()."""
        key = query if key is None else key
        value = key if value is None else value
        context = attention(self._heads(self.query(query)), self._heads(self.key(key)), self._heads(self.value(value)),
                            scope=scope, key_lengths=key_lengths, bias=bias, normaliser=normaliser,
                            dropout=self.dropout if self.training else 0.0)
        return self.output(context.transpose(1, 2).flatten(2))

    def weights(self, query: Tensor, key: Tensor | None = None, *, scope: ScopeLike = None,
                key_lengths: Tensor | None = None, bias: BiasLike = None,
                normaliser: NormaliserLike = "softmax") -> Tensor:
        """The weights [batch, heads, queries, keys] of the same call, without dropout and gradient."""
        key = query if key is None else key
        return attention_weights(self._heads(self.query(query)), self._heads(self.key(key)), scope=scope,
                                 key_lengths=key_lengths, bias=bias, normaliser=normaliser)
