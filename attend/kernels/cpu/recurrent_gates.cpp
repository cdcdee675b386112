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
    const auto load_gate = [&](const float* from, int64_t gate)
                               HWY_ATTR { return hn::LoadU(d, from + gate * hidden + k); };
    const auto r = Sigmoid(hn::Add(load_gate(y, 0), load_gate(u, 0)));
    const auto z = Sigmoid(hn::Add(load_gate(y, 1), load_gate(u, 1)));
    const auto n = Tanh(hn::MulAdd(r, load_gate(u, 2), load_gate(y, 2)));
    hn::StoreU(hn::MulAdd(z, hn::Sub(hn::LoadU(d, state + k), n), n), d, state + k);
  }
}

// c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c)
HWY_INLINE void LstmRow(const float* y, int64_t hidden, float* state, float* cell) {
  const Tag<float> d;
  for (int64_t k = 0; k < hidden; k += kLanes<float>) {
    const auto load_gate = [&](int64_t gate)
                               HWY_ATTR { return hn::LoadU(d, y + gate * hidden + k); };
    const auto kept = hn::Mul(Sigmoid(load_gate(1)), hn::LoadU(d, cell + k));
    const auto next = hn::MulAdd(Sigmoid(load_gate(0)), Tanh(load_gate(2)), kept);
    hn::StoreU(next, d, cell + k);
    hn::StoreU(hn::Mul(Sigmoid(load_gate(3)), Tanh(next)), d, state + k);
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

// s (1 - s), the slope of a sigmoid that gave s.
HWY_INLINE Vec<float> SigmoidSlope(Vec<float> s) { return hn::NegMulAdd(s, s, s); }

// 1 - t^2, the slope of a tanh that gave t.
HWY_INLINE Vec<float> TanhSlope(Vec<float> t) {
  return hn::NegMulAdd(t, t, hn::Set(Tag<float>(), 1.0F));
}

// r = sigmoid(y_r + u_r), z = sigmoid(y_z + u_z), n = tanh(y_n + r u_n), h' = n + z (h - n)
void GruGradient(const RecurrentGatesGradient& p, int64_t row) {
  const Tag<float> d;
  const int64_t first = row * 3 * p.hidden, size = p.hidden;
  const float *y = p.from_input + first, *u = p.from_state + first;
  float *dy = p.grad_input + first, *du = p.grad_product + first;
  for (int64_t k = 0; k < size; k += kLanes<float>) {
    const auto reset = hn::LoadU(d, u + 2 * size + k);
    const auto h = hn::LoadU(d, p.state + row * size + k);
    const auto dh = hn::LoadU(d, p.grad_state + row * size + k);
    const auto r = Sigmoid(hn::Add(hn::LoadU(d, y + k), hn::LoadU(d, u + k)));
    const auto z = Sigmoid(hn::Add(hn::LoadU(d, y + size + k), hn::LoadU(d, u + size + k)));
    const auto n = Tanh(hn::MulAdd(r, reset, hn::LoadU(d, y + 2 * size + k)));
    const auto dz = hn::Mul(hn::Mul(dh, hn::Sub(h, n)), SigmoidSlope(z));
    const auto dn = hn::Mul(hn::NegMulAdd(dh, z, dh), TanhSlope(n));
    const auto dr = hn::Mul(hn::Mul(dn, reset), SigmoidSlope(r));
    for (float* to : {dy, du}) {
      hn::StoreU(dr, d, to + k);
      hn::StoreU(dz, d, to + size + k);
    }
    hn::StoreU(dn, d, dy + 2 * size + k);
    hn::StoreU(hn::Mul(dn, r), d, du + 2 * size + k);
    hn::StoreU(hn::Mul(dh, z), d, p.grad_before + row * size + k);
  }
}

// c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')
void LstmGradient(const RecurrentGatesGradient& p, int64_t row) {
  const Tag<float> d;
  const int64_t size = p.hidden;
  const float* y = p.from_input + row * 4 * size;
  float* dy = p.grad_input + row * 4 * size;
  for (int64_t k = 0; k < size; k += kLanes<float>) {
    const auto c = hn::LoadU(d, p.cell + row * size + k);
    const auto dh = hn::LoadU(d, p.grad_state + row * size + k);
    const auto i = Sigmoid(hn::LoadU(d, y + k));
    const auto f = Sigmoid(hn::LoadU(d, y + size + k));
    const auto g = Tanh(hn::LoadU(d, y + 2 * size + k));
    const auto o = Sigmoid(hn::LoadU(d, y + 3 * size + k));
    const auto t = Tanh(hn::MulAdd(i, g, hn::Mul(f, c)));
    const auto dc =
        hn::MulAdd(hn::Mul(dh, o), TanhSlope(t), hn::LoadU(d, p.grad_cell + row * size + k));
    hn::StoreU(hn::Mul(hn::Mul(dc, g), SigmoidSlope(i)), d, dy + k);
    hn::StoreU(hn::Mul(hn::Mul(dc, c), SigmoidSlope(f)), d, dy + size + k);
    hn::StoreU(hn::Mul(hn::Mul(dc, i), TanhSlope(g)), d, dy + 2 * size + k);
    hn::StoreU(hn::Mul(hn::Mul(dh, t), SigmoidSlope(o)), d, dy + 3 * size + k);
    hn::StoreU(hn::Mul(dc, f), d, p.grad_before + row * size + k);
  }
}

void AllGateGradients(const RecurrentGatesGradient& p) {
  for (int64_t row = 0; row < p.rows; ++row)
    p.cell == nullptr ? GruGradient(p, row) : LstmGradient(p, row);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {

HWY_EXPORT(AllGates);

HWY_EXPORT(AllGateGradients);

void recurrent_gates(const RecurrentGates& problem) { HWY_DYNAMIC_DISPATCH(AllGates)(problem); }

void recurrent_gates_gradient(const RecurrentGatesGradient& problem) {
  HWY_DYNAMIC_DISPATCH(AllGateGradients)(problem);
}

}  // namespace attend::kernels
#endif
