"""First and second derivatives by finite differences, and PyTorch's own checks of operators."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import attend
from attend import biases, scopes, scores
from attend._lower import lower
from test_attention import graph

H = 2


def leaf(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def cases():
    """Functions of leaves, and the leaves: every part with a gradient, and every scope that has a code."""
    q, k, v = leaf(2, H, 3, 4), leaf(2, 1, 5, 4), leaf(2, 1, 5, 3)
    offsets, listed, _ = graph(3, 5)
    around = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    starts = torch.tensor([0, 1, 3])
    attention = attend.attention
    return {
        "plain": (lambda q, k, v: attention(q, k, v, return_lse=True), [q, k, v]),
        "additive": (lambda q, k, v, a, b: attention(q, k, v, score=scores.additive(a, b=b), scope="causal"),
                     [q, k, v, leaf(4), leaf(4)]),
        "additive_heads": (lambda q, k, v, a: attention(q, k, v, score=scores.additive_sigmoid(a), dropout=0.3, seed=5),
                           [q, k, v, leaf(H, 4)]),
        "distance": (lambda q, k, v: attention(q, k, v, score="squared_distance", normaliser="sigmoid",
                                               scope=scopes.window(1, 2)), [q, k, v]),
        "biases": (lambda q, k, v, d, s, r: attention(
            q, k, v, bias=biases.dense(d) + biases.alibi(s) + biases.relative_keys(r), soft_cap=1.5),
            [q, k, v, leaf(1, H, 3, 5), leaf(H), leaf(3, 4)]),
        "gaussian": (lambda q, k, v, c, w: attention(q, k, v, bias=biases.gaussian(c, w.square() + 1),
                                                     scope=scopes.around(around, 2)), [q, k, v, leaf(3), leaf(3)]),
        "sink": (lambda q, k, v, s: attention(q, k, v, sink=s, scope=scopes.key_lengths(torch.tensor([0, 3]))),
                 [q, k, v, leaf(H)]),
        "edges": (lambda q, k, v, e: attention(q, k, v, scope=scopes.edges(offsets, listed), bias=biases.edges(e)),
                  [q, k, v, leaf(listed.numel())]),
        "segments": (lambda q, k, v: attention(q, k, v, scope=scopes.segments(starts) | scopes.prefix(1)), [q, k, v]),
        "blocks": (lambda q, k, v: attention(q, k, v, normaliser="none",
                                             scope=scopes.blocks(torch.eye(2, 3, dtype=torch.bool), 2)), [q, k, v]),
        "sparsemax": (lambda q, k, v: attention(q, k, v, normaliser="sparsemax", return_lse=True), [q, k, v]),
        "entmax15": (lambda q, k, v: attention(q, k, v, normaliser="entmax15"), [q, k, v]),
        "recurrence": (lambda q, k, v, d, b, s: attend.linear_recurrence(
            q, k, v, decay=-d.square(), strength=b, delta=True, initial=s),
            [leaf(1, 1, 4, 3), leaf(1, 1, 4, 3), leaf(1, 2, 4, 2), leaf(1, 2, 4), leaf(1, 2, 4), leaf(1, 2, 3, 2)]),
        "normalised": (lambda q, k, v, d: attend.linear_recurrence(
            q, k, v, decay=-d.square(), l2_normalise=True, offsets=torch.tensor([0, 1, 4])),
            [leaf(1, 2, 4, 3), leaf(1, 2, 4, 3), leaf(1, 2, 4, 2), leaf(1, 2, 4, 3)]),
        "convolution": (lambda x, w, b, s: attend.causal_convolution(x, w, b, s, silu=True),
                        [leaf(2, 4, 3), leaf(3, 3), leaf(3), leaf(2, 2, 3)]),
    }


NAMES = list(cases())


@pytest.mark.parametrize("name", NAMES)
def test_first_derivatives(name):
    function, leaves = cases()[name]
    assert gradcheck(function, leaves)


@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives(name):
    function, leaves = cases()[name]
    assert gradgradcheck(function, leaves, atol=1e-4, fast_mode=True)


def test_third_derivatives():
    function, leaves = cases()["plain"]
    q = leaves[0]
    first, = torch.autograd.grad(function(*leaves)[0].sin().sum(), q, create_graph=True)
    assert gradgradcheck(lambda q: torch.autograd.grad(function(q, *leaves[1:])[0].square().sum(), q,
                                                       create_graph=True)[0], [q], atol=1e-4, fast_mode=True)
    assert first.requires_grad


def test_one_tensor_as_query_key_and_value():
    x = leaf(1, H, 4, 3)
    assert gradcheck(lambda x: attend.attention(x, x, x), [x])
    assert gradgradcheck(lambda x: attend.attention(x, x, x), [x], fast_mode=True)


def arguments_of(scope, bias, dtype=torch.float32, gradient=True):
    q, k, v = (torch.randn(2, H, n, 8, dtype=dtype, requires_grad=gradient) for n in (5, 7, 7))
    return lower(q, k, v, score="scaled_dot", scope=scope, bias=bias, normaliser="softmax", key_lengths=None,
                 sink=None, soft_cap=0.0, dropout=0.0, seed=0).arguments


@pytest.mark.parametrize("scope", ["all", "causal", "lengths"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck_attention(scope, dtype):
    given = scopes.key_lengths(torch.tensor([3, 7])) if scope == "lengths" else scope
    bias = biases.dense(torch.randn(1, H, 1, 7, dtype=dtype, requires_grad=True))
    arguments = arguments_of(given, bias, dtype)
    torch.library.opcheck(torch.ops.attend_kernels.attention, (*arguments, True))
    detached = arguments_of(given, bias, dtype, gradient=False)
    detached = [x.detach() if isinstance(x, torch.Tensor) else x for x in detached]
    torch.library.opcheck(torch.ops.attend_kernels.attention, (*detached, False))
    context, lse, unrounded = torch.ops.attend_kernels.attention(*detached, True)
    assert torch.ops.attend_kernels.attention(*detached, False)[2].numel() == 0
    kept = unrounded if dtype == torch.bfloat16 else context
    torch.library.opcheck(torch.ops.attend_kernels.attention_backward,
                          (*detached, kept, lse, torch.ones_like(context), None, 0b10111))
    for name, more in (("weights", ()), ("top", (3,)), ("entropy", ()), ("column_sums", ())):
        torch.library.opcheck(getattr(torch.ops.attend_kernels, name), (*detached, lse, [1], 1, 3, *more))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_results_have_the_order_of_their_tensors_in_memory(dtype):
    tokens_first = [torch.randn(2, n, H, 8, dtype=dtype).transpose(1, 2).requires_grad_() for n in (5, 7, 7)]
    heads_first = [x.detach().contiguous().requires_grad_() for x in tokens_first]
    found = []
    for inputs in (tokens_first, heads_first):
        context = attend.attention(*inputs)
        found.append((context, *torch.autograd.grad(context, inputs, torch.ones_like(context))))
    for a, b in zip(*found):
        assert a.transpose(1, 2).is_contiguous() and b.is_contiguous()
        assert torch.equal(a, b)


@pytest.mark.parametrize("offsets", [None, torch.tensor([0, 1, 150])])
def test_opcheck_recurrence(offsets):
    q, k, v = (torch.randn(1, H, 150, 4, requires_grad=True) for _ in range(3))
    rest = (-torch.rand(1, H, 150, 1), None, None, offsets, True, False, 1.0)
    torch.library.opcheck(torch.ops.attend_kernels.recurrence, (q, k, v, *rest))
    q, k, v = (x.detach() for x in (q, k, v))
    output, _, kept = torch.ops.attend_kernels.recurrence(q, k, v, *rest)
    torch.library.opcheck(torch.ops.attend_kernels.recurrence_backward,
                          (q, k, v, *rest, kept, torch.ones_like(output), None))


def test_opcheck_convolution():
    x, w = torch.randn(2, 5, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    torch.library.opcheck(torch.ops.attend_kernels.convolution, (x, w, None, None, True))


def test_func_grad_is_refused():
    """PyTorch refuses torch.func.grad of operators with a registered gradient; torch.autograd takes them."""
    q, k, v = (x.detach() for x in cases()["plain"][1])
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(lambda q: attend.attention(q, k, v).sum())(q)


def test_vmap():
    q, k, v = (torch.randn(3, 2, H, 5, 4, dtype=torch.float64) for _ in range(3))
    lengths = torch.tensor([[1, 5], [2, 2], [0, 3]])
    ours = torch.vmap(lambda q, k, v, n: attend.attention(q, k, v, key_lengths=n))(q, k, v, lengths)
    theirs = torch.stack([attend.attention(*x, key_lengths=n) for *x, n in zip(q, k, v, lengths)])
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    x, w = torch.randn(3, 2, 5, 4), torch.randn(4, 2)
    mapped = torch.vmap(lambda x: attend.causal_convolution(x, w)[0])(x)
    torch.testing.assert_close(mapped, torch.stack([attend.causal_convolution(one, w)[0] for one in x]))


def test_forward_mode():
    for name in ("additive", "biases", "entmax15", "recurrence", "convolution"):
        function, leaves = cases()[name]
        leaves = tuple(x.detach() for x in leaves)
        tangents = tuple(torch.randn_like(x) for x in leaves)
        first = lambda *x: function(*x) if isinstance(function(*x), torch.Tensor) else function(*x)[0]
        _, forward = torch.func.jvp(first, leaves, tangents)
        step = 1e-6
        moved = [first(*(x + sign * step * t for x, t in zip(leaves, tangents))) for sign in (1, -1)]
        torch.testing.assert_close(forward, (moved[0] - moved[1]) / (2 * step), rtol=1e-6, atol=1e-6)


def test_change_in_place_between_forward_and_backward():
    q, k, v = (x.detach().clone().requires_grad_() for x in cases()["plain"][1])
    copy = q * 1
    context = attend.attention(copy, k, v)
    copy.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        context.sum().backward()
