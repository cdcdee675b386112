"""Recurrences and the convolution against their definitions in float64."""

import pytest
import torch

import attend

B, HK, H = 2, 2, 4


def inputs(tokens, depth=5, value_depth=7, dtype=torch.float64):
    q, k = (torch.randn(B, HK, tokens, depth, dtype=torch.float64) for _ in range(2))
    v = torch.randn(B, H, tokens, value_depth, dtype=torch.float64)
    return [x.to(dtype).requires_grad_() for x in (q, k / k.norm(dim=-1, keepdim=True), v)]


def by_definition(q, k, v, decay=None, strength=None, delta=False, initial=None, scale=None):
    q, k = (x.repeat_interleave(H // HK, 1) for x in (q, k))
    state = torch.zeros(B, H, q.shape[-1], v.shape[-1], dtype=torch.float64) if initial is None else initial
    outputs = []
    for t in range(v.shape[2]):
        if decay is not None:
            state = state * decay[:, :, t].exp().unsqueeze(-1)
        u = v[:, :, t]
        if delta:
            u = u - torch.einsum("bhdv,bhd->bhv", state, k[:, :, t])
        if strength is not None:
            u = u * strength[:, :, t, None]
        state = state + torch.einsum("bhd,bhv->bhdv", k[:, :, t], u)
        outputs.append(torch.einsum("bhdv,bhd->bhv", state, q[:, :, t]))
    return torch.stack(outputs, 2) * (q.shape[-1] ** -0.5 if scale is None else scale), state


@pytest.mark.parametrize("tokens", [1, 3, 59, 300])
@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("decays", ["none", "head", "row"])
def test_recurrence(tokens, delta, decays):
    q, k, v = inputs(tokens)
    strength = torch.rand(B, H, tokens, dtype=torch.float64).requires_grad_()
    initial = torch.randn(B, H, 5, 7, dtype=torch.float64).requires_grad_()
    decay = None if decays == "none" else (-torch.rand(B, H, tokens, 5 if decays == "row" else 1,
                                                       dtype=torch.float64)).requires_grad_()
    given = decay.squeeze(-1) if decays == "head" else decay
    ours = attend.linear_recurrence(q, k, v, decay=given, strength=strength, delta=delta, initial=initial)
    theirs = by_definition(q, k, v, decay, strength, delta, initial)
    wanted = [x for x in (q, k, v, decay, strength, initial) if x is not None]
    up = [torch.randn_like(x) for x in theirs]
    mine = torch.autograd.grad(ours, wanted, up)
    exact = torch.autograd.grad(theirs, wanted, up)
    for a, b in zip([*ours, *mine], [*theirs, *exact]):
        assert (a - b).abs().max() <= 1e-11 * max(1.0, b.abs().max())


def test_packed_sequences():
    q, k, v = (x.detach()[:1] for x in inputs(200))
    offsets = torch.tensor([0, 3, 3, 150, 200])
    ours, state = attend.linear_recurrence(q, k, v, offsets=offsets, delta=True, l2_normalise=True)
    for n, (a, b) in enumerate([(0, 3), (3, 150), (150, 200)]):
        part, last = attend.linear_recurrence(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], delta=True, l2_normalise=True)
        torch.testing.assert_close(ours[:, :, a:b], part, rtol=0, atol=1e-12)
        torch.testing.assert_close(state[[0, 2, 3][n]], last[0], rtol=0, atol=1e-12)


def test_token_by_token_is_the_whole():
    q, k, v = (x.detach() for x in inputs(20))
    decay = -torch.rand(H, dtype=torch.float64)
    whole, last = attend.linear_recurrence(q, k, v, decay=decay)
    state = None
    for t in range(20):
        one, state = attend.linear_recurrence(q[:, :, t:t + 1], k[:, :, t:t + 1], v[:, :, t:t + 1], decay=decay,
                                              initial=state)
        torch.testing.assert_close(one, whole[:, :, t:t + 1], rtol=0, atol=1e-12)
    torch.testing.assert_close(state, last, rtol=0, atol=1e-12)


@pytest.mark.parametrize("silu", [False, True])
@pytest.mark.parametrize("width", [1, 4])
def test_convolution(silu, width):
    x = torch.randn(B, 9, 5, dtype=torch.float64, requires_grad=True)
    w = torch.randn(5, width, dtype=torch.float64, requires_grad=True)
    b = torch.randn(5, dtype=torch.float64, requires_grad=True)
    s = torch.randn(B, width - 1, 5, dtype=torch.float64, requires_grad=True)
    ours = attend.causal_convolution(x, w, b, s, silu=silu)
    whole = torch.cat([s, x], 1)
    y = torch.nn.functional.conv1d(whole.transpose(1, 2), w.unsqueeze(1), b, groups=5).transpose(1, 2)
    theirs = (y * y.sigmoid() if silu else y, whole[:, 9:])
    up = [torch.randn_like(t) for t in theirs]
    mine, exact = (torch.autograd.grad(found, [x, w, b, s], up, allow_unused=True) for found in (ours, theirs))
    for a, c in zip([*ours, *mine], [*theirs, *exact]):
        torch.testing.assert_close(a, c, rtol=1e-11, atol=1e-11)


def test_convolution_keeps_the_dtype():
    x, w = torch.randn(1, 6, 3).bfloat16(), torch.randn(3, 2)
    assert attend.causal_convolution(x, w)[0].dtype == torch.bfloat16
