#pragma once

#include "attend/ops/backend.h"

namespace attend {

// The kernels of attend/kernels.
class CpuBackend : public Backend {
 public:
  std::string why_not(const Parts& parts, const LoweredSpec& spec) const override;
  AttentionResult forward(const Parts& parts, const LoweredSpec& spec,
                          at::Tensor* unrounded) const override;
  Parts backward(const Parts& parts, const LoweredSpec& spec, const AttentionResult& result,
                 const AttentionResult& upstream,
                 const std::array<bool, part::count>& wanted) const override;
  at::Tensor weights(const Parts& parts, const LoweredSpec& spec, const at::Tensor& lse,
                     const WeightRows& rows) const override;
  TopWeights top(const Parts& parts, const LoweredSpec& spec, const at::Tensor& lse,
                 const WeightRows& rows, int64_t count) const override;
  at::Tensor entropy(const Parts& parts, const LoweredSpec& spec, const at::Tensor& lse,
                     const WeightRows& rows) const override;
  at::Tensor column_sums(const Parts& parts, const LoweredSpec& spec, const at::Tensor& lse,
                         const WeightRows& rows) const override;
};

}  // namespace attend
