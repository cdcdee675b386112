#pragma once

#include <array>
#include <memory>
#include <string>

#include "attend/kernels/attention.h"
#include "attend/ops/lowered_spec.h"

namespace attend {

// Fused attention on one kind of device. Its arguments have been checked, and stay on the device;
// results are allocated there. Dropout is drawn by Dropout::seed and the place of a weight alone
// (kernels/dropout.h), so that every backend drops the same ones.
//
// Contexts have the dtype of the queries; normalisers of rows, weights, and gradients of all but
// queries, keys and values have that of the arithmetic.
class Backend {
 public:
  virtual ~Backend() = default;

  // Why this problem is not for it, for messages; empty where it is.
  virtual std::string why_not(const Parts& parts, const LoweredSpec& spec) const = 0;

  // unrounded: null, or takes the context before it is rounded to 16 bits, where it is; else it
  // stays undefined.
  virtual AttentionResult forward(const Parts& parts, const LoweredSpec& spec,
                                  at::Tensor* unrounded) const = 0;

  // The gradients of the parts where `wanted`, and always of queries, keys and values. The context
  // of `result` is the unrounded one where forward gave it. `upstream` holds the gradients of
  // `result`; either may be undefined, for 0.
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

// Adds a backend for the lifetime of the returned object; it is asked before the backends that were
// there already. The CPU's is always there. Do not call it while other threads compute attention.
class BackendRegistration {
 public:
  explicit BackendRegistration(const Backend& backend);
  ~BackendRegistration();
  BackendRegistration(const BackendRegistration&) = delete;
  BackendRegistration& operator=(const BackendRegistration&) = delete;
};

// The backend that takes a problem, or why none does.
struct BackendChoice {
  const Backend* backend = nullptr;
  std::string obstacle = {};  // the first backend's; empty where there is a backend
};
BackendChoice choose_backend(const Parts& parts, const LoweredSpec& spec);

}  // namespace attend
