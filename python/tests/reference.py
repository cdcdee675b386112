"""Attention by its definition, in float64: independent of the package."""

import torch

INFINITY = float("inf")


def weights_of(x, allowed, normaliser="softmax", sink=None):
    """Weights and lse of scores x under a bool mask."""
    batch, heads, queries, keys = x.shape
    allowed = allowed.expand(x.shape)
    if normaliser in ("softmax", "sigmoid", "none"):
        return _at_once(x, allowed, normaliser, sink)
    weights = torch.zeros_like(x)
    rows, lses = [], []
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                seen = allowed[b, h, i].nonzero().flatten()
                row, lse = _row(x[b, h, i][seen], normaliser)
                rows.append(torch.zeros(keys, dtype=x.dtype).index_add(0, seen, row))
                lses.append(lse)
    weights = torch.stack(rows).view(x.shape) if rows else weights
    return weights, torch.stack(lses).view(batch, heads, queries)


def _at_once(x, allowed, normaliser, sink):
    none = torch.zeros((), dtype=x.dtype)
    empty = ~allowed.any(-1)
    if normaliser != "softmax":
        weights = x if normaliser == "none" else 1 / (1 + (-x).exp())
        return torch.where(allowed, weights, none), torch.where(empty, -INFINITY, none).expand(x.shape[:3])
    least = none if sink is None else sink.view(1, -1, 1, 1)
    top = torch.where(allowed, x, -INFINITY).amax(-1, keepdim=True).detach()
    top = torch.where(empty.unsqueeze(-1), least, top) if sink is None else torch.maximum(top, least.detach())
    terms = torch.where(allowed, (torch.where(allowed, x, top) - top).exp(), none)
    total = terms.sum(-1, keepdim=True)
    if sink is not None:
        total = total + (least - top).exp()
    divisor = torch.where(total == 0, 1.0, total)
    return terms / divisor, (top + total.log()).squeeze(-1)


def _row(s, normaliser):
    if s.numel() == 0:
        return s, s.new_tensor(-INFINITY)
    return _sparse(s, 1.0 if normaliser == "sparsemax" else 2.0)


def _sparse(s, power):
    # The threshold by bisection, then by its closed form on the support, which autograd differentiates.
    d = s.detach()
    low, high = d.max() - (1 if power == 1 else 2), d.max()
    for _ in range(60):
        middle = (low + high) / 2
        total = (((d - middle).clamp_min(0) / (1 if power == 1 else 2)) ** power).sum()
        low, high = (middle, high) if total > 1 else (low, middle)
    inside = d > high
    t = s[inside]
    if power == 1:
        threshold = (t.sum() - 1) / t.numel()
        return torch.where(inside, s - threshold, 0.0), threshold
    mean = t.mean()
    threshold = mean - ((4 - (t - mean).square().sum()) / t.numel()).sqrt()
    return torch.where(inside, ((s - threshold) / 2).square(), 0.0), threshold


def attention(q, k, v, score, allowed, bias=0.0, normaliser="softmax", sink=None, cap=0.0):
    """Context and lse for scores by `score(q, k)`, [B, H, Tq, Tk]."""
    heads = q.shape[1]
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    x = score(q, k)
    if cap:
        x = cap * (x / cap).tanh()
    weights, lse = weights_of(x + bias, allowed, normaliser, sink)
    return weights @ v, lse


def dot(q, k):
    return torch.einsum("bhid,bhjd->bhij", q, k)


def scaled_dot(q, k):
    return dot(q, k) / q.shape[-1] ** 0.5


def pairs(function):
    return lambda q, k: function(q.unsqueeze(3), k.unsqueeze(2))
