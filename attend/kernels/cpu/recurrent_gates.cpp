#include "attend/kernels/recurrent_gates.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/recurrent_gates.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "attend/kernels/cpu/gates-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// h = n + z (h - n)
HWY_INLINE void GruRow(const float* y, const float* u, int64_t hidden, float* state) {
  const Tag<float> d;
  for (int64_t k = 0; k < hidden; k += kLanes<float>) {
    const auto at = [&](const float* from, int64_t gate)
                        HWY_ATTR { return hn::LoadU(d, from + gate * hidden + k); };
    const auto r = Sigmoid(hn::Add(at(y, 0), at(u, 0)));
    const auto z = Sigmoid(hn::Add(at(y, 1), at(u, 1)));
    const auto n = Tanh(hn::MulAdd(r, at(u, 2), at(y, 2)));
    hn::StoreU(hn::MulAdd(z, hn::Sub(hn::LoadU(d, state + k), n), n), d, state + k);
  }
}

// c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c)
HWY_INLINE void LstmRow(const float* y, int64_t hidden, float* state, float* cell) {
  const Tag<float> d;
  for (int64_t k = 0; k < hidden; k += kLanes<float>) {
    const auto at = [&](int64_t gate) HWY_ATTR { return hn::LoadU(d, y + gate * hidden + k); };
    const auto kept = hn::Mul(Sigmoid(at(1)), hn::LoadU(d, cell + k));
    const auto next = hn::MulAdd(Sigmoid(at(0)), Tanh(at(2)), kept);
    hn::StoreU(next, d, cell + k);
    hn::StoreU(hn::Mul(Sigmoid(at(3)), Tanh(next)), d, state + k);
  }
}

void AllGates(const RecurrentGates& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* y = p.from_input + r * p.stride;
    float* state = p.state + r * p.hidden;
    if (p.cell == nullptr)
      GruRow(y, p.from_state + r * p.stride, p.hidden, state);
    else
      LstmRow(y, p.hidden, state, p.cell + r * p.hidden);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(AllGates);

void recurrent_gates(const RecurrentGates& problem) { HWY_DYNAMIC_DISPATCH(AllGates)(problem); }

}  // namespace attend::kernels
#endif
