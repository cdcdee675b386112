"""Bad input: each error names the argument."""

import pytest
import torch

import attend
from attend import biases, normalisers, scopes, scores

q, k, v = (torch.randn(2, 4, n, 8) for n in (5, 7, 7))


def _nine_masks():
    scope = scopes.mask(torch.ones(5, 7) > 0)
    for _ in range(8):
        scope = scope & scopes.mask(torch.ones(5, 7) > 0)
    return scope


BAD = [
    ("query", lambda: attend.attention([1.0], k, v)),
    ("query", lambda: attend.attention(q.long(), k, v)),
    ("query", lambda: attend.attention(torch.tensor(1.0), k, v)),
    ("query", lambda: attend.attention(q.to_sparse(), k, v)),
    ("key has shape", lambda: attend.attention(q, k[0], v)),
    ("key has dtype", lambda: attend.attention(q, k.double(), v)),
    ("key has batch", lambda: attend.attention(q, k[:1], v[:1])),
    ("key has 3 heads", lambda: attend.attention(q, k[:, :3], v[:, :3])),
    ("key 6", lambda: attend.attention(q, k[..., :6], v)),
    ("depth, the last axis", lambda: attend.attention(q[..., :0], k[..., :0], v)),
    ("value has shape", lambda: attend.attention(q, k, v[:, :, :3])),
    ("score is 'other'", lambda: attend.attention(q, k, v, score="other")),
    ("normaliser is 'other'", lambda: attend.attention(q, k, v, normaliser="other")),
    ("scope is 'other'", lambda: attend.attention(q, k, v, scope="other")),
    ("bias is 3", lambda: attend.attention(q, k, v, bias=3)),
    ("bias is a bool tensor", lambda: attend.attention(q, k, v, bias=torch.ones(5, 7) > 0)),
    ("mask has dtype", lambda: attend.attention(q, k, v, scope=torch.ones(5, 7))),
    ("mask has shape", lambda: attend.attention(q, k, v, scope=torch.ones(7, 5) > 0)),
    ("mask requires a gradient", lambda: attend.attention(q, k, v, scope=torch.ones(5, 7, requires_grad=True))),
    ("layout has shape", lambda: attend.attention(q, k, v, scope=scopes.blocks(torch.ones(9, 9) > 0, 4))),
    ("key_lengths has dtype", lambda: attend.attention(q, k, v, key_lengths=torch.ones(2))),
    ("key_lengths has shape", lambda: attend.attention(q, k, v, key_lengths=torch.ones(3, dtype=torch.int64))),
    ("key_starts has shape", lambda: attend.attention(q, k, v, scope=scopes.key_starts(torch.zeros(3, dtype=torch.int64)))),
    ("scope has 9 tensors", lambda: attend.attention(q, k, v, scope=_nine_masks())),
    ("left is -1", lambda: scopes.window(-1)),
    ("dilation is 0", lambda: scopes.window(3, dilation=0)),
    ("length is 1.5", lambda: scopes.prefix(1.5)),
    ("key_starts has shape", lambda: attend.attention(q, k, v, scope=scopes.segments(
        torch.tensor([0, 5]), torch.tensor([0, 3, 7])))),
    ("offsets of the edges has shape", lambda: attend.attention(q, k, v, scope=scopes.edges(
        torch.zeros(3, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)))),
    ("dense bias has shape", lambda: attend.attention(q, k, v, bias=torch.randn(6, 7))),
    ("dense bias has dtype", lambda: attend.attention(q, k, v, bias=torch.randn(5, 7).double())),
    ("slopes of alibi has shape", lambda: attend.attention(q, k, v, bias=biases.alibi(torch.rand(3)))),
    ("table of buckets", lambda: attend.attention(q, k, v, bias=biases.buckets(torch.rand(3, 8)))),
    ("table of relative keys", lambda: attend.attention(q, k, v, bias=biases.relative_keys(torch.rand(4, 8)))),
    ("table of the grid", lambda: attend.attention(q, k, v, bias=biases.grid(torch.rand(3, 3)))),
    ("sink has shape", lambda: attend.attention(q, k, v, sink=torch.rand(3))),
    ("sink is given with", lambda: attend.attention(q, k, v, sink=torch.rand(4), normaliser="sigmoid")),
    ("temperature is 0", lambda: normalisers.temperature(0)),
    ("soft_cap is -1", lambda: attend.attention(q, k, v, soft_cap=-1)),
    ("soft_cap is nan", lambda: attend.attention(q, k, v, soft_cap=float("nan"))),
    ("dropout is 1", lambda: attend.attention(q, k, v, dropout=1)),
    ("seed is -1", lambda: attend.attention(q, k, v, dropout=0.5, seed=-1)),
    ("v of score additive has shape", lambda: scores.additive(torch.rand(2, 3, 8))),
    ("v of score additive has depth", lambda: attend.attention(q, k, v, score=scores.additive(torch.rand(9)))),
    ("W_q", lambda: attend.attention(q, k, v, score=scores.additive(torch.rand(8), W_q=torch.rand(8, 9)))),
    ("have 3 heads", lambda: attend.attention(q, k, v, score=scores.additive(torch.rand(3, 8)))),
    ("heads has 4", lambda: attend.attention_weights(q, k, heads=[4])),
    ("there are 5 queries", lambda: attend.attention_weights(q, k, first_row=3, rows=3)),
    ("lse is", lambda: attend.attention_weights(q, k, torch.rand(2, 4, 6))),
    ("count is 0", lambda: attend.top(q, k, 0)),
    ("query has shape", lambda: attend.linear_recurrence(q[0], k[0], v[0])),
    ("they must match", lambda: attend.linear_recurrence(q, k, v)),
    ("decay has shape", lambda: attend.linear_recurrence(k, k, v, decay=torch.rand(3))),
    ("strength has shape", lambda: attend.linear_recurrence(k, k, v, strength=torch.rand(2, 4))),
    ("initial has shape", lambda: attend.linear_recurrence(k, k, v, initial=torch.rand(2, 4, 8, 9))),
    ("offsets", lambda: attend.linear_recurrence(k, k, v, offsets=torch.tensor([0, 7]))),
    ("scale is nan", lambda: attend.linear_recurrence(k, k, v, scale=float("nan"))),
    ("input has shape", lambda: attend.causal_convolution(q, torch.rand(8, 3))),
    ("weight has shape", lambda: attend.causal_convolution(q[0], torch.rand(7, 3))),
    ("bias has shape", lambda: attend.causal_convolution(q[0], torch.rand(8, 3), torch.rand(7))),
    ("state has shape", lambda: attend.causal_convolution(q[0], torch.rand(8, 3), state=torch.rand(4, 3, 8))),
    ("heads is 3", lambda: attend.MultiHeadAttention(8, 3)),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_the_error_names_the_argument(number):
    text, call = BAD[number]
    with pytest.raises(ValueError) as caught:
        call()
    assert text in str(caught.value)


def test_lengths_past_the_keys():
    """Values are read by the kernels; their error crosses as a RuntimeError."""
    with pytest.raises(RuntimeError, match="length"):
        attend.attention(q, k, v, key_lengths=torch.tensor([3, 8]))
    with pytest.raises(RuntimeError):
        attend.attention(q, k, v, scope=scopes.segments(torch.tensor([0, 5]), torch.tensor([0, 8])))
    with pytest.raises(RuntimeError):
        attend.attention(q, k, v, scope=scopes.edges(torch.tensor([0, 1, 1, 1, 1, 1]), torch.tensor([7])))


def test_decay_above_zero():
    with pytest.raises(RuntimeError, match="decay"):
        attend.linear_recurrence(k, k, v, decay=torch.full((2, 4, 7), 0.5))


def test_another_device():
    class Elsewhere(torch.Tensor):
        device = torch.device("cuda")

    with pytest.raises(RuntimeError, match="query is on cuda.*CPU only"):
        attend.attention(torch.randn(2, 4, 5, 8).as_subclass(Elsewhere), k, v)


def test_nan_stays_in_its_row():
    poisoned = q.clone()
    poisoned[0, 1, 2, 3] = float("nan")
    context = attend.attention(poisoned, k, v)
    assert context[0, 1, 2].isnan().all() and context.isnan().sum() == 8
    bias = torch.zeros(5, 7)
    bias[1, 1] = float("nan")
    assert attend.attention(q, k, v, bias=bias)[:, :, 1].isnan().all()
