"""torch.ops.attend.*: operators_test.py LIBRARY. Compares with PyTorch's operations, with gradients."""

import math
import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import cases  # noqa: E402

ATTEND = torch.ops.attend


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def additive_scores(query, key, v):
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v


def causal_mask(queries, keys):
    return torch.arange(keys)[None, :] <= torch.arange(queries)[:, None]


class OperatorsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.query, self.key, self.value = random(2, 4, 5, 3), random(2, 2, 7, 3), random(2, 2, 7, 6)

    def expect_close(self, got, wanted):
        # Sums of at most a few dozen terms of a few units.
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)

    def test_scaled_dot_is_what_torch_computes(self):
        key, value = (x.repeat_interleave(2, dim=1) for x in (self.key, self.value))
        scores = self.query @ key.transpose(-2, -1) / math.sqrt(3)
        scores = scores.masked_fill(~causal_mask(5, 7), -math.inf)
        wanted = scores.softmax(-1) @ value
        inputs = (self.query, self.key, self.value)
        upstream = torch.randn_like(wanted)
        gradients = torch.autograd.grad(wanted, inputs, upstream)
        for path in ("automatic", "fused", "composed"):
            context, lse = ATTEND.attention(*inputs, scope="causal", path=path)
            self.expect_close(context, wanted)
            self.expect_close(lse, scores.logsumexp(-1))
            for got, gradient in zip(torch.autograd.grad(context, inputs, upstream), gradients):
                self.expect_close(got, gradient)

    def test_additive_with_biases_is_what_torch_computes(self):
        v, slopes = random(3), torch.tensor([0.5, 0.25, 0.1, 2.0], dtype=torch.float64)
        lengths = torch.tensor([7, 4])
        key, value = (x.repeat_interleave(2, dim=1) for x in (self.key, self.value))
        distance = (torch.arange(7)[None, :] - torch.arange(5)[:, None]).abs()
        scores = additive_scores(self.query, key, v) - slopes.view(4, 1, 1) * distance
        scores = scores.masked_fill(torch.arange(7) >= lengths.view(2, 1, 1, 1), -math.inf)
        inputs = (self.query, self.key, self.value, v)
        wanted = scores.softmax(-1) @ value
        upstream = torch.randn_like(wanted)
        gradients = torch.autograd.grad(wanted, inputs, upstream, retain_graph=True)
        context, lse = ATTEND.attention(self.query, self.key, self.value, score="additive",
                                        parameters={"v": v}, key_lengths=lengths,
                                        bias={"alibi": slopes}, path="fused")
        self.expect_close(context, wanted)
        for got, gradient in zip(torch.autograd.grad(context, inputs, upstream), gradients):
            self.expect_close(got, gradient)
        weights = ATTEND.attention_weights(
            self.query.detach(), self.key.detach(), lse.detach(), score="additive",
            parameters={"v": v.detach()}, key_lengths=lengths, bias={"alibi": slopes}, heads=[2, 0],
            first_row=1, rows=3)
        self.expect_close(weights, scores.softmax(-1)[:, [2, 0], 1:4].detach())

    def test_gradients_match_differences_twice(self):
        query, key, value, v = random(1, 1, 2, 2), random(1, 1, 3, 2), random(1, 1, 3, 1), random(2)

        def context(query, key, value, v):
            return ATTEND.attention(query, key, value, score="additive", parameters={"v": v},
                                    scope="window:1 | prefix:1")[0]

        self.assertTrue(torch.autograd.gradcheck(context, (query, key, value, v)))
        self.assertTrue(torch.autograd.gradgradcheck(context, (query, key, value, v)))

    def test_dropout_repeats_with_its_seed(self):
        def context(seed, path="automatic"):
            return ATTEND.attention(self.query, self.key, self.value, dropout=0.5, seed=seed,
                                    path=path)[0]

        self.assertTrue(torch.equal(context(3), context(3)))
        self.assertFalse(torch.equal(context(3), context(4)))
        self.expect_close(context(3, "fused"), context(3, "composed"))

    def test_a_seed_says_which_key_is_drawn(self):
        for normaliser in ("hard", "gumbel"):
            def weights(seed):
                _, lse = ATTEND.attention(self.query, self.key, self.value, normaliser=normaliser,
                                          seed=seed)
                return ATTEND.attention_weights(self.query, self.key, lse, normaliser=normaliser,
                                                seed=seed)

            self.assertFalse(torch.equal(weights(0), weights(3)))
            self.assertFalse(torch.equal(weights(3), weights(4)))
            context = ATTEND.attention(self.query, self.key, self.value, normaliser=normaliser,
                                       seed=3)[0]
            self.expect_close(weights(3) @ self.value.repeat_interleave(2, dim=1), context)

    def test_new_queries_stand_behind_the_keys(self):
        lengths, queries, slopes = torch.tensor([7, 4]), torch.tensor([5, 2]), torch.ones(4).double()
        table = random(4, 8)
        start = (lengths - queries).view(2, 1, 1, 1)
        distance = torch.arange(7).view(1, 1, 1, 7) - torch.arange(5).view(1, 1, 5, 1) - start
        # Distances up to 3 have separate buckets; causal distances use all buckets.
        far = (4 + (torch.log((-distance).clamp(min=1) / 4) / math.log(32) * 4).long()).clamp(max=7)
        bucket = torch.where(-distance < 4, (-distance).clamp(min=0), far)
        key, value = (x.repeat_interleave(2, dim=1) for x in (self.key, self.value))
        scores = self.query @ key.transpose(-2, -1) / math.sqrt(3) - distance.abs()
        scores = scores + table[torch.arange(4).view(1, 4, 1, 1), bucket]
        in_scope = (distance <= 0) & (torch.arange(7) < lengths.view(2, 1, 1, 1))
        in_scope = in_scope & (torch.arange(5).view(5, 1) < queries.view(2, 1, 1, 1))
        weights = scores.masked_fill(~in_scope, -math.inf).softmax(-1).nan_to_num(0)
        bias = {"alibi": slopes, "buckets": table}
        for stands in ({"align": "last"}, {"query_offsets": lengths - queries}):
            context, lse = ATTEND.attention(self.query, self.key, self.value, scope="causal",
                                            key_lengths=lengths, query_lengths=queries, bias=bias,
                                            **stands)
            self.expect_close(context, weights @ value)
            found = ATTEND.attention_weights(self.query, self.key, lse, scope="causal",
                                             key_lengths=lengths, query_lengths=queries, bias=bias,
                                             **stands)
            self.expect_close(found, weights)

    def test_forgetting_and_kernels_of_the_distance(self):
        gates, p, a = random(2, 4, 7), torch.rand(4).double() + 0.5, torch.rand(4).double() + 0.5
        sums = torch.nn.functional.logsigmoid(gates).cumsum(-1)
        away = (torch.arange(5)[:, None] - torch.arange(7)[None, :]).abs()
        key, value = (x.repeat_interleave(2, dim=1) for x in (self.key, self.value))
        scores = self.query @ key.transpose(-2, -1) / math.sqrt(3)
        scores = scores + sums[..., :5, None] - sums[..., None, :]
        scores = scores - p.view(4, 1, 1) * torch.log(1 + a.view(4, 1, 1) * away)
        wanted = scores.masked_fill(~causal_mask(5, 7), -math.inf).softmax(-1) @ value
        bias = {"forget": gates, "kerple_log_p": p, "kerple_log_a": a}
        inputs = (self.query, self.key, self.value)
        upstream = torch.randn_like(wanted)
        for path in ("fused", "composed"):
            got = ATTEND.attention(*inputs, scope="causal", bias=bias, path=path)[0]
            self.expect_close(got, wanted)
            for one, other in zip(torch.autograd.grad(got, (*inputs, gates), upstream),
                                  torch.autograd.grad(wanted, (*inputs, gates), upstream,
                                                      retain_graph=True)):
                self.expect_close(one, other)

    def test_edges_of_a_graph(self):
        offsets, keys = torch.tensor([0, 2, 2, 5, 6, 7]), torch.tensor([1, 6, 0, 2, 3, 6, 4])
        queries = torch.repeat_interleave(torch.arange(5), offsets.diff())
        bias = random(4, 7)
        key, value = (x.repeat_interleave(2, dim=1) for x in (self.key, self.value))
        dense = torch.full((4, 5, 7), -math.inf, dtype=torch.float64)
        dense[:, 1] = 0  # the second query sees no key and has no weights
        dense = dense.index_put((torch.arange(4)[:, None], queries, keys), bias)
        seen = (offsets.diff() > 0).double()[:, None]
        wanted_weights = (self.query @ key.transpose(-2, -1) / math.sqrt(3) + dense).softmax(-1) * seen
        wanted = wanted_weights @ value
        inputs = (self.query, self.key, self.value, bias)
        upstream = torch.randn_like(wanted)
        gradients = torch.autograd.grad(wanted, inputs, upstream)
        graph = {"edge_offsets": offsets, "edge_keys": keys, "edge_bias": bias}
        for path in ("fused", "composed"):
            context, lse = ATTEND.attention(self.query, self.key, self.value, path=path, **graph)
            self.expect_close(context, wanted)
            for got, gradient in zip(torch.autograd.grad(context, inputs, upstream), gradients):
                self.expect_close(got, gradient)
            self.expect_close(
                ATTEND.attention_weights(self.query, self.key, lse, **graph), wanted_weights)

    def test_every_normaliser_is_reachable(self):
        for normaliser in ("softmax", "sigmoid", "none", "sparsemax", "entmax15", "entmax:1.3",
                           "softpick", "scalable", "stick_breaking", "top_k:2"):
            context, lse = ATTEND.attention(self.query, self.key, self.value, normaliser=normaliser)
            weights = ATTEND.attention_weights(self.query, self.key, lse, normaliser=normaliser)
            self.expect_close(weights @ self.value.repeat_interleave(2, dim=1), context)

    def test_scripts(self):
        @torch.jit.script
        def scripted(query, key, value):
            return torch.ops.attend.attention(query, key, value, scope="causal")[0]

        inputs = (self.query, self.key, self.value)
        self.expect_close(scripted(*inputs), ATTEND.attention(*inputs, scope="causal")[0])

    def test_errors_name_the_argument(self):
        x = torch.ones(2, 3)
        for message, call in {
            "queries have depth 3, keys depth 4": lambda: ATTEND.attention(x, torch.ones(2, 4), x),
            "no scope is called": lambda: ATTEND.attention(x, x, x, scope="casual"),
            "did you mean scaled_dot": lambda: ATTEND.attention(x, x, x, score="scaled_dit"),
            "did you mean softmax": lambda: ATTEND.attention(x, x, x, normaliser="softmix"),
            "no bias is called alibis": lambda: ATTEND.attention(x, x, x, bias={"alibis": x}),
            "align is 'end'": lambda: ATTEND.attention(x, x, x, align="end"),
            "path is quick": lambda: ATTEND.attention(x, x, x, path="quick"),
            "one is missing": lambda: ATTEND.attention(x, x, x, bias={"widths": x}),
            "edge_keys; one is missing": lambda: ATTEND.attention(x, x, x, edge_offsets=x.long()),
        }.items():
            with self.assertRaisesRegex(RuntimeError, message):
                call()


if __name__ == "__main__":
    torch.ops.load_library(sys.argv.pop(1))
    cases.main()
