"""Values and gradients against the definition in float64."""

import itertools

import pytest
import torch

import attend
import reference
from attend import biases, normalisers, scopes, scores

B, H = 2, 4
SIZES = [(1, 1, 8), (3, 59, 16), (59, 111, 24), (111, 3, 7)]


def tensors(queries, keys, depth, key_heads=H, dtype=torch.float64, gradient=False):
    q = torch.randn(B, H, queries, depth, dtype=torch.float64)
    k = torch.randn(B, key_heads, keys, depth, dtype=torch.float64)
    v = torch.randn(B, key_heads, keys, depth + 3, dtype=torch.float64)
    return [x.to(dtype).requires_grad_(gradient) for x in (q, k, v)]


def everywhere(queries, keys):
    return torch.ones(1, 1, queries, keys, dtype=torch.bool)


def positions(queries, keys):
    return torch.arange(queries).view(-1, 1), torch.arange(keys).view(1, -1)


def compare(ours, theirs, inputs, tolerance, seed=3):
    """Contexts, and gradients of their products with random numbers."""
    generator = torch.Generator().manual_seed(seed)
    upstream = torch.randn(theirs.shape, generator=generator, dtype=torch.float64)
    assert (ours.double() - theirs).abs().max() <= tolerance * max(1.0, theirs.abs().max())
    mine = torch.autograd.grad((ours.double() * upstream).sum(), inputs, allow_unused=True)
    exact = torch.autograd.grad((theirs * upstream).sum(), inputs, allow_unused=True)
    for a, b in zip(mine, exact):
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.double() - b.double()).abs().max() <= tolerance * max(1.0, b.abs().max())


# A few roundings of sums of up to 111 terms.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("normaliser", ["softmax", "sigmoid", "none", "sparsemax", "entmax15"])
def test_normalisers(sizes, dtype, normaliser):
    q, k, v = tensors(*sizes, dtype=dtype, gradient=True)
    ours = attend.attention(q, k, v, normaliser=normaliser)
    theirs, _ = reference.attention(q.double(), k.double(), v.double(), reference.scaled_dot,
                                    everywhere(*sizes[:2]), normaliser=normaliser)
    compare(ours, theirs, [q, k, v], TOLERANCE[dtype])


def activated(activation, v):
    return lambda a, b: (activation(a + b) * v).sum(-1)


ACTIVATIONS = {"additive": torch.tanh, "additive_sigmoid": torch.sigmoid, "additive_relu": torch.relu,
               "additive_leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, 0.2)}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("per_head", [False, True])
def test_additive(sizes, name, per_head):
    q, k, v = tensors(*sizes, gradient=True)
    width = 9
    W_q = torch.randn(width, sizes[2], dtype=torch.float64, requires_grad=True)
    W_k = torch.randn(width, sizes[2], dtype=torch.float64, requires_grad=True)
    b = torch.randn(width, dtype=torch.float64, requires_grad=True)
    vector = torch.randn(*([H] if per_head else []), width, dtype=torch.float64, requires_grad=True)
    ours = attend.attention(q, k, v, score=getattr(scores, name)(vector, W_q, W_k, b))
    weight = vector.view(H, 1, 1, width) if per_head else vector
    score = reference.pairs(activated(ACTIVATIONS[name], weight))
    theirs, _ = reference.attention(q @ W_q.T + b, k @ W_k.T, v, score, everywhere(*sizes[:2]))
    compare(ours, theirs, [q, k, v, W_q, W_k, b, vector], 1e-11)


def test_other_scores():
    q, k, v = tensors(5, 13, 6, gradient=True)
    W = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    w_q, w_k = (torch.randn(6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    beta = torch.rand(H, dtype=torch.float64, requires_grad=True)
    unit = lambda x: x / x.norm(dim=-1, keepdim=True)
    cases = [
        (scores.dot(0.3), lambda q, k: 0.3 * reference.dot(q, k), []),
        (scores.general(W), lambda q, k: reference.dot(q @ W, k), [W]),
        (scores.linear(w_q, w_k), lambda q, k: (q @ w_q).unsqueeze(-1) + (k @ w_k).unsqueeze(-2), [w_q, w_k]),
        (scores.squared_distance(), reference.pairs(lambda a, b: -(a - b).square().sum(-1)), []),
        (scores.absolute_distance(), reference.pairs(lambda a, b: -(a - b).abs().sum(-1)), []),
        (scores.cosine(beta), lambda q, k: beta.view(H, 1, 1) * reference.dot(unit(q), unit(k)), [beta]),
    ]
    for score, exact, parameters in cases:
        ours = attend.attention(q, k, v, score=score, normaliser="sigmoid")
        theirs, _ = reference.attention(q, k, v, exact, everywhere(5, 13), normaliser="sigmoid")
        compare(ours, theirs, [q, k, v, *parameters], 1e-12)


def scope_cases(queries, keys):
    i, j = positions(queries, keys)
    lengths = torch.tensor([keys // 2, keys])
    mask = torch.rand(B, 1, queries, keys) < 0.5
    layout = torch.rand(B, 1, (queries + 3) // 4, (keys + 3) // 4) < 0.5
    spread = layout.repeat_interleave(4, 2).repeat_interleave(4, 3)[:, :, :queries, :keys]
    starts = torch.tensor([0, 2, 5, min(queries, keys)])
    centres = torch.rand(B, H, queries) * keys
    own = lengths.view(-1, 1, 1, 1)
    segment = torch.zeros(queries, keys, dtype=torch.bool)
    for a, b in itertools.pairwise(starts.tolist()):
        segment[a:b, a:b] = True
    offsets, listed, linked = graph(queries, keys)
    return {
        "causal": (scopes.causal(), j <= i),
        "causal_offset": (scopes.causal(keys - queries), j <= i + keys - queries),
        "window": (scopes.window(3, 1), (j >= i - 3) & (j <= i + 1)),
        "dilated": (scopes.dilated(8, 2), ((j - i).abs() <= 8) & ((j - i) % 2 == 0)),
        "prefix": (scopes.causal() | scopes.prefix(4), (j <= i) | (j < 4)),
        "global": (scopes.window(2) | scopes.global_tokens(2), ((j - i).abs() <= 2) | (j < 2) | (i < 2)),
        "lengths": (scopes.key_lengths(lengths), j < own),
        "starts": (scopes.key_starts(torch.tensor([0, keys // 2 + 1])),
                   j >= torch.tensor([0, keys // 2 + 1]).view(-1, 1, 1, 1)),
        "queries": (scopes.query_lengths(torch.tensor([2, queries])) & scopes.causal(),
                    (i < torch.tensor([2, queries]).view(-1, 1, 1, 1)) & (j <= i)),
        "mask": (scopes.mask(mask), mask),
        "column": (scopes.mask(mask[..., :1]), mask[..., :1]),
        "blocks": (scopes.blocks(layout, 4), spread),
        "segments": (scopes.segments(starts), segment),
        "around": (scopes.around(centres, 3), (j - centres.unsqueeze(-1)).abs() <= 3),
        "edges": (scopes.edges(offsets, listed), linked),
    }


def graph(queries, keys):
    linked = torch.rand(queries, keys) < 0.2
    listed = linked.nonzero()
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), linked.sum(1).cumsum(0)])
    return offsets, listed[:, 1].contiguous(), linked


@pytest.mark.parametrize("name", list(scope_cases(11, 17)))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_scopes(name, dtype):
    queries, keys = 11, 17
    torch.manual_seed(2)
    scope, allowed = scope_cases(queries, keys)[name]
    q, k, v = tensors(queries, keys, 8, key_heads=2, dtype=dtype, gradient=True)
    ours, lse = attend.attention(q, k, v, scope=scope, return_lse=True)
    allowed = allowed.expand(B, H, queries, keys) if allowed.dim() == 4 else allowed.expand(1, 1, queries, keys)
    theirs, expected = reference.attention(q.double(), k.double(), v.double(), reference.scaled_dot, allowed)
    compare(ours, theirs, [q, k, v], TOLERANCE[dtype])
    torch.testing.assert_close(lse.double(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    empty = ~allowed.any(-1).expand(B, H, queries)
    assert (ours[empty] == 0).all()


def buckets_of(distance, count):
    own = count // 2
    exact = own // 2
    far = distance.abs().clamp_min(1).float()
    wide = ((far / exact).log() / torch.tensor(128 / exact).log() * (own - exact)).long() + exact
    bucket = torch.where(distance.abs() < exact, distance.abs(), wide.clamp_max(own - 1))
    return bucket + own * (distance > 0)


def bias_cases(queries, keys, dtype):
    i, j = positions(queries, keys)
    r = lambda *shape: torch.randn(*shape, dtype=dtype, requires_grad=True)
    dense, row, slopes, number = r(B, 1, queries, keys), r(keys), r(H), r(H)
    table, centres, relative = r(H, 32), r(B, 1, queries), r(H, 7, 8)
    widths = (torch.rand(B, H, queries, dtype=dtype) + 1).requires_grad_()
    grid = r(H, 7, 9)
    y, x = (lambda p: p // 5), (lambda p: p % 5)
    clipped = (j - i).clamp(-3, 3) + 3
    shaw = lambda q: torch.einsum("bhid,hijd->bhij", q, relative[:, clipped]) / 8**0.5
    slope = lambda s, o: -s.view(1, -1, 1, 1) * (i + o - j).abs()
    near = lambda: -(j - centres.unsqueeze(-1)).square() / (2 * widths.unsqueeze(-1).square())
    return {
        "dense": (biases.dense(dense), lambda q: dense, [dense]),
        "row": (biases.dense(row), lambda q: row, [row]),
        "offset": (biases.offset(number), lambda q: number.view(1, -1, 1, 1), [number]),
        "alibi": (biases.alibi(slopes, 2), lambda q: slope(slopes, 2), [slopes]),
        "two_alibi": (biases.alibi(slopes, 2) + biases.alibi(number), lambda q: slope(slopes, 2) + slope(number, 0),
                      [slopes, number]),
        "buckets": (biases.buckets(table), lambda q: table[:, buckets_of(j - i, 32)], [table]),
        "relative_keys": (biases.relative_keys(relative), shaw, [relative]),
        "gaussian": (biases.gaussian(centres, widths), lambda q: near(), [centres, widths]),
        "grid": (biases.grid(grid), lambda q: grid[:, y(j) - y(i) + 3, x(j) - x(i) + 4], [grid]),
        "sum": (biases.dense(dense) + biases.buckets(table) + biases.grid(grid),
                lambda q: dense + table[:, buckets_of(j - i, 32)] + grid[:, y(j) - y(i) + 3, x(j) - x(i) + 4],
                [dense, table, grid]),
    }


@pytest.mark.parametrize("name", list(bias_cases(11, 17, torch.float64)))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_biases(name, dtype):
    queries, keys = 11, 17
    bias, exact, parameters = bias_cases(queries, keys, dtype)[name]
    q, k, v = tensors(queries, keys, 8, dtype=dtype, gradient=True)
    i, j = positions(queries, keys)
    ours = attend.attention(q, k, v, bias=bias, scope="causal")
    theirs, _ = reference.attention(q.double(), k.double(), v.double(), reference.scaled_dot,
                                    (j <= i).view(1, 1, queries, keys), bias=exact(q).double())
    compare(ours, theirs, [q, k, v, *parameters], TOLERANCE[dtype])


def test_edge_bias():
    offsets, listed, linked = graph(11, 17)
    q, k, v = tensors(11, 17, 8, gradient=True)
    bias = torch.randn(H, listed.numel(), dtype=torch.float64, requires_grad=True)
    ours = attend.attention(q, k, v, scope=scopes.edges(offsets, listed), bias=biases.edges(bias))
    place = linked.nonzero()
    whole = torch.zeros(H, 11, 17, dtype=torch.float64).index_put(
        (torch.arange(H).view(-1, 1), place[:, 0], place[:, 1]), bias)
    theirs, _ = reference.attention(q, k, v, reference.scaled_dot, linked.view(1, 1, 11, 17), bias=whole)
    compare(ours, theirs, [q, k, v, bias], 1e-12)


def test_sink_cap_and_temperature():
    q, k, v = tensors(11, 17, 8, gradient=True)
    sink = torch.randn(H, dtype=torch.float64, requires_grad=True)
    ours = attend.attention(q, k, v, sink=sink, soft_cap=2.0, normaliser=normalisers.temperature(1.7),
                            scope=scopes.key_lengths(torch.tensor([0, 9])))
    allowed = torch.arange(17).view(1, 1, 1, 17) < torch.tensor([0, 9]).view(-1, 1, 1, 1)
    scaled = lambda q, k: 2.0 * (reference.scaled_dot(q, k) / 2.0).tanh() / 1.7
    theirs, _ = reference.attention(q, k, v, scaled, allowed.expand(B, 1, 11, 17), sink=sink / 1.7)
    compare(ours, theirs, [q, k, v, sink], 1e-12)


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_axes(axes):
    q, k, v = tensors(7, 9, 8)
    whole = attend.attention(q, k, v, scope="causal")
    cut = (slice(None),) * 4 if axes == 4 else (slice(None), 0) if axes == 3 else (0, 0)
    ours, lse = attend.attention(q[cut], k[cut], v[cut], scope="causal", return_lse=True)
    assert ours.dim() == axes and lse.dim() == axes - 1
    torch.testing.assert_close(ours, whole[cut], rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half(dtype):
    q, k, v = tensors(59, 111, 32, dtype=dtype, gradient=True)
    ours = attend.attention(q, k, v, scope="causal")
    assert ours.dtype == dtype
    i, j = positions(59, 111)
    theirs, _ = reference.attention(q.double(), k.double(), v.double(), reference.scaled_dot,
                                    (j <= i).view(1, 1, 59, 111))
    # Weights, contexts and gradients of scores are rounded to the storage type.
    compare(ours, theirs, [q, k, v], 8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("magnitude", [1e-18, 1e6, 1e18])
def test_magnitudes(magnitude):
    q, k, v = tensors(3, 59, 8, dtype=torch.float32)
    ours = attend.attention(q * magnitude, k, v)
    theirs, _ = reference.attention(q.double() * magnitude, k.double(), v.double(), reference.scaled_dot,
                                    everywhere(3, 59))
    assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()


def test_strides():
    """Expanded, transposed and sliced tensors are read in place or copied, with the same result."""
    base = torch.randn(B, 12, 3, H, 16, dtype=torch.float64)
    q, k, v = (base[:, :, n].transpose(1, 2) for n in range(3))
    whole = attend.attention(q.contiguous(), k.contiguous(), v.contiguous())
    torch.testing.assert_close(attend.attention(q, k, v), whole, rtol=0, atol=0)
    odd = [x.transpose(-2, -1).contiguous().transpose(-2, -1) for x in (q, k, v)]
    torch.testing.assert_close(attend.attention(*odd), whole, rtol=0, atol=0)
    flipped = [x.flip(2) for x in (q, k, v)]
    torch.testing.assert_close(attend.attention(*flipped).flip(2), whole, rtol=0, atol=1e-14)
    one = k[:, :1].expand(B, H, 12, 16)
    torch.testing.assert_close(attend.attention(q, one, one), attend.attention(q, k[:, :1], k[:, :1]), rtol=0,
                               atol=1e-14)
    negative = torch.complex(q, -q).conj().imag  # a deferred negation
    assert negative.is_neg()
    torch.testing.assert_close(attend.attention(negative, k, v), attend.attention(q, k, v), rtol=0, atol=0)


def test_empty():
    q, k, v = tensors(5, 0, 8)
    context, lse = attend.attention(q, k, v, return_lse=True)
    assert (context == 0).all() and (lse == -float("inf")).all()
    assert attend.attention(q[:0], k[:0], v[:0]).shape == (0, H, 5, 11)
    assert attend.attention(q[:, :, :0], k, v).shape == (B, H, 0, 11)


def test_threads_give_the_same_bits():
    q, k, v = tensors(111, 111, 32, dtype=torch.float32, gradient=True)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        context = attend.attention(q, k, v, scope="causal")
        found.append([context, *torch.autograd.grad(context.square().sum(), [q, k, v])])
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_dropout():
    q, k, v = tensors(59, 111, 8, gradient=True)
    ours = attend.attention(q, k, v, dropout=0.25, seed=7)
    factors = torch.ops.attend_kernels.dropout_mask(q.detach(), B, H, 59, 111, 0.25, 7)
    assert abs((factors == 0).double().mean() - 0.25) < 0.02  # six standard deviations of 52,392 draws
    weights, _ = reference.weights_of(reference.scaled_dot(q, k), everywhere(59, 111))
    compare(ours, (weights * factors) @ v, [q, k, v], 1e-12)
    assert torch.equal(ours, attend.attention(q, k, v, dropout=0.25, seed=7))
    assert not torch.equal(ours, attend.attention(q, k, v, dropout=0.25))


def test_weights_and_summaries():
    q, k, v = tensors(11, 17, 8, key_heads=2)
    choices = {"scope": "causal", "bias": biases.alibi(biases.alibi_slopes(H).double())}
    context, lse = attend.attention(q, k, v, return_lse=True, **choices)
    weights = attend.attention_weights(q, k, lse, **choices)
    torch.testing.assert_close(weights @ v.repeat_interleave(2, 1), context, rtol=0, atol=1e-13)
    part = attend.attention_weights(q, k, heads=[3, 1], first_row=2, rows=4, **choices)
    torch.testing.assert_close(part, weights[:, [3, 1], 2:6], rtol=0, atol=0)
    best, where = attend.top(q, k, 2, lse, **choices)
    torch.testing.assert_close(best[:, :, 1:], weights[:, :, 1:].topk(2).values, rtol=0, atol=0)
    assert (where[:, :, 0, 1] == -1).all()
    entropy = attend.entropy(q, k, lse, **choices)
    torch.testing.assert_close(entropy, -torch.special.xlogy(weights, weights).sum(-1), rtol=0, atol=1e-12)
    torch.testing.assert_close(attend.column_sums(q, k, lse, **choices), weights.sum(2), rtol=0, atol=1e-12)


def test_equals_scaled_dot_product_attention():
    q, k, v = tensors(59, 59, 16, dtype=torch.float32, gradient=True)
    for ours, theirs in [({"scope": "causal"}, {"is_causal": True}), ({}, {})]:
        sdpa = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), **theirs)
        compare(attend.attention(q, k, v, **ours), sdpa, [q, k, v], 2e-5)
