// Tests of a second backend: supported calls use its results and gradients, other calls use the
// CPU's kernels.
#include "attend/ops/backend.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"
#include "tests/support/software_device.h"

namespace attend {
namespace backend_test {

using at::Tensor;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Softmax over dot products in float64, by formulas; counts its calls.
class PlainBackend : public Backend {
 public:
  std::string refusal_reason(const Parts& parts, const LoweredSpec& spec) const override {
    if (parts[part::query].scalar_type() != at::kDouble) return "it takes only float64";
    if (spec.score->family != Family::dot ||
        spec.normaliser->kernel != kernels::Normaliser::softmax)
      return "it takes only a softmax over dot products";
    for (size_t index = part::vector; index < part::count; ++index)
      if (parts[index].defined()) return "it takes no bias";
    return spec.scope.any_of.empty() ? "" : "it takes no scope";
  }

  AttentionResult forward(const Parts& parts, const LoweredSpec& spec, Tensor*) const override {
    ++forwards;
    const Tensor s = scores(parts, spec);
    return {at::matmul(s.softmax(-1), parts[part::value]), s.logsumexp(-1)};
  }

  Parts backward(const Parts& parts, const LoweredSpec& spec, const AttentionResult&,
                 const AttentionResult& upstream,
                 const std::array<bool, part::count>&) const override {
    ++backwards;
    Parts gradients;
    const Tensor &k = parts[part::key], &v = parts[part::value];
    const Tensor w = scores(parts, spec).softmax(-1);
    gradients[part::value] = at::matmul(w.transpose(-2, -1), upstream.context);
    const Tensor of_weights = at::matmul(upstream.context, v.transpose(-2, -1));
    Tensor of_scores = w * (of_weights - (w * of_weights).sum(-1, true));
    if (upstream.lse.defined()) of_scores = of_scores + w * upstream.lse.unsqueeze(-1);
    gradients[part::query] = spec.scale * at::matmul(of_scores, k);
    gradients[part::key] = spec.scale * at::matmul(of_scores.transpose(-2, -1), parts[part::query]);
    return gradients;
  }

  Tensor weights(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                 const kernels::Selection& rows) const override {
    ++summaries;
    const Tensor all = (scores(parts, spec) - lse.unsqueeze(-1)).exp();
    return all.index_select(1, at::tensor(at::IntArrayRef(rows.heads.data(), rows.heads.size())))
        .narrow(2, rows.first_row, rows.rows);
  }
  // Unused: scopes are not supported.
  Tensor edge_weights(const Parts&, const LoweredSpec&, const Tensor&,
                      const kernels::Selection&) const override {
    return {};
  }
  TopWeights top(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                 const kernels::Selection& rows, int64_t count) const override {
    const auto [values, keys] = weights(parts, spec, lse, rows).topk(count);
    return {values, keys};
  }
  Tensor entropy(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                 const kernels::Selection& rows) const override {
    const Tensor w = weights(parts, spec, lse, rows);
    return -(w * w.log()).sum(-1);
  }
  Tensor column_sums(const Parts& parts, const LoweredSpec& spec, const Tensor& lse,
                     const kernels::Selection& rows) const override {
    return weights(parts, spec, lse, rows).sum(2);
  }

  mutable int forwards = 0, backwards = 0, summaries = 0;

 private:
  static Tensor scores(const Parts& parts, const LoweredSpec& spec) {
    return spec.scale * at::matmul(parts[part::query], parts[part::key].transpose(-2, -1));
  }
};

struct Found {
  Tensor context, lse, weights, argmax, entropy, sums, query, key, value;
};

class BackendTest : public testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    query = at::randn({2, 3, 4, 5}, at::kDouble);
    key = at::randn({2, 3, 6, 5}, at::kDouble);
    value = at::randn({2, 3, 6, 2}, at::kDouble);
  }

  Found run(const AttentionSpec& spec, at::ScalarType type = at::kDouble) const {
    const auto variable = [&](const Tensor& x) {
      return x.to(type).detach().set_requires_grad(true);
    };
    const Tensor q = variable(query), k = variable(key), v = variable(value);
    const auto [context, lse] = attention(q, k, v, spec);
    (context.square().sum() + lse.sin().sum()).backward();
    const at::NoGradGuard no_gradient;
    const Selection rows{{2, 0}, 1, 3};
    return {context.detach(),
            lse.detach(),
            attention_weights(q, k, lse, spec, rows),
            attention_argmax(q, k, lse, spec, rows),
            attention_entropy(q, k, lse, spec),
            attention_column_sums(q, k, lse, spec),
            q.grad(),
            k.grad(),
            v.grad()};
  }

  static void expect_near(const Found& a, const Found& b) {
    for (const auto member : {&Found::context, &Found::lse, &Found::weights, &Found::entropy,
                              &Found::sums, &Found::query, &Found::key, &Found::value})
      EXPECT_TRUE(at::allclose(a.*member, b.*member, 1e-9, 1e-11));
    EXPECT_TRUE(a.argmax.equal(b.argmax));
  }

  Tensor query, key, value;
};

TEST_F(BackendTest, TakesWhatItCanAndTheKernelsTakeTheRest) {
  const AttentionSpec plain, causally = {.scope = causal()};
  const Found wanted = run(plain), other = run(causally);
  PlainBackend backend;
  {
    const BackendRegistration registration(backend);
    expect_near(run(plain), wanted);
    EXPECT_EQ(backend.forwards, 1);
    EXPECT_EQ(backend.backwards, 1);
    EXPECT_EQ(backend.summaries, 4);
    expect_near(run(causally), other);
    run(plain, at::kFloat);
    EXPECT_EQ(backend.forwards, 1) << "float32 and scopes are not for it";
  }
  expect_near(run(plain), wanted);
  EXPECT_EQ(backend.forwards, 1) << "it is gone";
}

TEST_F(BackendTest, TheLastIsAskedFirst) {
  PlainBackend first, second;
  const BackendRegistration one(first), two(second);
  run({});
  EXPECT_EQ(first.forwards, 0);
  EXPECT_EQ(second.forwards, 1);
}

TEST_F(BackendTest, WhereNoneTakesItTheReasonIsTheCpus) {
  const PlainBackend backend;
  const BackendRegistration registration(backend);
  const AttentionSpec spec = {.normaliser = "hard", .path = Path::fused};
  EXPECT_THAT([&] { attention(query, key, value, spec); },
              ThrowsMessage<Error>(HasSubstr("no kernel supports normaliser hard")));
}

// Weights are dropped by a hash of their place: every device drops the same ones.
TEST_F(BackendTest, EveryDeviceDropsTheSameWeights) {
  const at::Device device = reference::software_device(0);
  for (const double probability : {0.25, 0.9}) {
    const AttentionSpec spec = {.dropout = {probability, 77}};
    const Tensor here = attention(query, key, value, spec).context;
    const Tensor there =
        attention(query.to(device), key.to(device), value.to(device), spec).context;
    EXPECT_EQ(there.device(), device);
    EXPECT_TRUE(at::allclose(there.to(at::kCPU), here, 1e-12, 1e-14));
  }
}

}  // namespace backend_test
}  // namespace attend
