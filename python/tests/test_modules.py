"""Modules, and properties of the process."""

import importlib.util
import itertools
import resource
import subprocess
import sys

import pytest
import torch

import attend


def test_additive_attention_learns():
    """A copy of the key with the largest number is learned: the loss falls by half."""
    module = attend.AdditiveAttention(4, 4, 16)
    adam = torch.optim.Adam(module.parameters(), 0.02)
    losses = []
    for _ in range(150):
        keys = torch.randn(32, 6, 4)
        wanted = keys[torch.arange(32), keys[..., 0].argmax(1)].unsqueeze(1)
        loss = (module(torch.ones(32, 1, 4), keys) - wanted).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert sum(losses[-20:]) < 0.5 * sum(losses[:20])


def test_additive_weights_and_lengths():
    module = attend.AdditiveAttention(3, 5, 7).double()
    q, k = torch.randn(2, 4, 3).double(), torch.randn(2, 6, 5).double()
    lengths = torch.tensor([2, 6])
    weights = module.weights(q, k, key_lengths=lengths)
    torch.testing.assert_close(weights @ k, module(q, k, key_lengths=lengths), rtol=0, atol=1e-13)
    hidden = (module.query(q).unsqueeze(2) + module.key(k).unsqueeze(1)).tanh() @ module.v
    torch.testing.assert_close(weights[1], hidden[1].softmax(-1), rtol=0, atol=1e-13)


@pytest.mark.parametrize("key_heads", [4, 2])
def test_multi_head_attention(key_heads):
    module = attend.MultiHeadAttention(16, 4, key_heads=key_heads).double()
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    if key_heads == 4:
        theirs = torch.nn.MultiheadAttention(16, 4, batch_first=True).double()
        with torch.no_grad():
            theirs.in_proj_weight.copy_(torch.cat([module.query.weight, module.key.weight, module.value.weight]))
            theirs.in_proj_bias.copy_(torch.cat([module.query.bias, module.key.bias, module.value.bias]))
            theirs.out_proj.load_state_dict(module.output.state_dict())
        blocked = torch.ones(5, 5).triu(1) > 0  # there True means: do not attend
        torch.testing.assert_close(module(x, scope="causal"), theirs(x, x, x, attn_mask=blocked)[0], rtol=0, atol=1e-13)
    assert module(x).shape == x.shape
    assert module.weights(x).shape == (2, 4, 5, 5)


def test_memory_is_flat():
    q, k, v = (torch.randn(1, 2, 64, 16, requires_grad=True) for _ in range(3))

    def calls(count):
        for _ in range(count):
            context = attend.attention(q, k, v, scope="causal")
            torch.autograd.grad(context.sum(), [q, k, v])

    calls(200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(2000)
    # 2000 calls of 50 kB of results would be 100 MB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8192


def test_no_second_openmp():
    code = "import attend; print(sum('omp' in line.rsplit('/', 1)[-1] for line in open('/proc/self/maps')), end='')"
    whole = "import torch; print(sum('omp' in line.rsplit('/', 1)[-1] for line in open('/proc/self/maps')), end='')"
    run = lambda text: subprocess.run([sys.executable, "-c", text], check=True, capture_output=True).stdout
    assert run(code) == run(whole)


@pytest.mark.parametrize("order", list(itertools.permutations(["attend", "numpy", "sklearn.svm", "onnxruntime"])))
def test_import_order(order):
    present = [name for name in order if importlib.util.find_spec(name.partition(".")[0])]
    if len(present) < len(order) and order != tuple(sorted(order)):
        pytest.skip("scikit-learn or onnxruntime is not installed")
    code = f"import {', '.join(present)}, torch; x = torch.ones(1, 1, 2, 4); print(attend.attention(x, x, x).sum().item())"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"8.0\n"
