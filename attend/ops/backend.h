#pragma once

#include <array>
#include <memory>
#include <string>

#include "attend/kernels/attention.h"
#include "attend/ops/lowered_spec.h"

namespace attend {

// Fused attention on one kind of device. Arguments have been checked and stay on the device;
// results are allocated there. Dropout depends only on Dropout::seed and the position of a weight
// (kernels/dropout.h); hence every backend drops the same weights.
//
// Contexts have the dtype of the queries. Normalisers of rows, weights, and gradients of all parts
// except queries, keys and values have the dtype of the arithmetic.
class Backend {
 public:
  virtual ~Backend() = default;

  // Reason why this problem is not supported, for messages; empty if it is supported.
  virtual std::string refusal_reason(const Parts& parts, const LoweredSpec& spec) const = 0;

  // unrounded: if not null, receives the context before rounding to 16 bits; stays undefined if the
  // context is not rounded.
  virtual AttentionResult forward(const Parts& parts, const LoweredSpec& spec,
                                  at::Tensor* unrounded) const = 0;

  // Returns the gradients of queries, keys and values, and of the other parts that `wanted`
  // selects. The context of `result` is the unrounded context if forward returned one. `upstream`
  // holds the gradients of `result`; an undefined gradient counts as 0.
  virtual Parts backward(const Parts& parts, const LoweredSpec& spec, const AttentionResult& result,
                         const AttentionResult& upstream,
                         const std::array<bool, part::count>& wanted) const = 0;

  // The same as the functions of attention.h with these names, without gradients; lse [B, H, Tq] is
  // contiguous. Shapes: [B, heads, rows, Tk], [B, heads, edges of the longest list], [B, heads,
  // rows, count], [B, heads, rows], [B, heads, Tk].
  virtual at::Tensor weights(const Parts& parts, const LoweredSpec& spec, const at::Tensor& lse,
                             const kernels::Selection& rows) const = 0;
  virtual at::Tensor edge_weights(const Parts& parts, const LoweredSpec& spec,
                                  const at::Tensor& lse, const kernels::Selection& rows) const = 0;
  virtual TopWeights top(const Parts& parts, const LoweredSpec& spec, const at::Tensor& lse,
                         const kernels::Selection& rows, int64_t count) const = 0;
  virtual at::Tensor entropy(const Parts& parts, const LoweredSpec& spec, const at::Tensor& lse,
                             const kernels::Selection& rows) const = 0;
  virtual at::Tensor column_sums(const Parts& parts, const LoweredSpec& spec, const at::Tensor& lse,
                                 const kernels::Selection& rows) const = 0;
};

// Registers a backend for the lifetime of this object, with priority over earlier ones. The CPU
// backend is always registered. Do not use while other threads compute attention.
class BackendRegistration {
 public:
  explicit BackendRegistration(const Backend& backend);
  ~BackendRegistration();
  BackendRegistration(const BackendRegistration&) = delete;
  BackendRegistration& operator=(const BackendRegistration&) = delete;
};

// The first backend that supports a problem, or the reason why none does.
struct BackendChoice {
  const Backend* backend = nullptr;
  std::string obstacle = {};  // reason of the first registered backend; empty if one was found
};
BackendChoice choose_backend(const Parts& parts, const LoweredSpec& spec);

}  // namespace attend
