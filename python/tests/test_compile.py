"""torch.compile, autocast, meta tensors."""

import pytest
import torch

import attend
from attend import biases, scopes, scores


def function(q, k, v, slopes, vector):
    first = attend.attention(q, k, v, scope=scopes.causal() & scopes.window(9), bias=biases.alibi(slopes))
    second = attend.attention(q, k, first, score=scores.additive(vector), normaliser="sparsemax")
    output, _ = attend.linear_recurrence(q, k, second, delta=True, l2_normalise=True)
    mixed, _ = attend.causal_convolution(output.flatten(1, 2), vector[:, None].expand(-1, 3), silu=True)
    return mixed


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, None])
def test_compile(backend, dynamic):
    compiled = torch.compile(function, fullgraph=True, backend=backend, dynamic=dynamic)
    for tokens in (17, 23):
        given = [torch.randn(2, 2, tokens, 8, requires_grad=True) for _ in range(3)]
        given += [torch.rand(2, requires_grad=True), torch.randn(8, requires_grad=True)]
        found, expected = compiled(*given), function(*given)
        torch.testing.assert_close(found, expected)
        mine = torch.autograd.grad(found.square().sum(), given)
        theirs = torch.autograd.grad(expected.square().sum(), given)
        for a, b in zip(mine, theirs):
            torch.testing.assert_close(a, b)


def test_autocast():
    q, k, v = (torch.randn(2, 2, 9, 8, requires_grad=True) for _ in range(3))
    bias = torch.randn(9, 9, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        context = attend.attention(q, k, v, bias=bias)
    assert context.dtype == torch.bfloat16
    exact = attend.attention(q, k, v, bias=bias)
    assert (context - exact).abs().max() < 8 * torch.finfo(torch.bfloat16).eps
    context.float().sum().backward()
    assert q.grad.dtype == torch.float32 and bias.grad.dtype == torch.float32
    module = attend.AdditiveAttention(8, 8, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(q[:, 0], k[:, 0]).dtype == torch.bfloat16


def test_meta():
    q = torch.empty(2, 2, 9, 8, device="meta")
    assert attend.attention(q, q, q).shape == q.shape
