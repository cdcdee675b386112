#pragma once

#include <torch/nn/module.h>

#include "attend/base/enum_names.h"
#include "attend/nn/pass.h"

namespace attend {

// layer: layer normalisation (Ba et al. 2016); rms: division by the root mean square, without mean
// and bias (Zhang & Sennrich 2019).
enum class NormKind { layer, rms };
inline EnumNames names_of(NormKind) { return {"layer", "rms"}; }

// Normalisation of the last axis with trained weights, initially 1, and biases, initially 0.
class Norm : public torch::nn::Module {
 public:
  // `epsilon` is added to the variance, or to the mean square.
  Norm(int64_t depth, NormKind kind, double epsilon);

  // scale * norm(x), x [.., depth] -> the same shape.
  at::Tensor forward(const at::Tensor& x, const Pass& pass, double scale = 1) const;

 private:
  double epsilon_;
  at::Tensor weight_, bias_;  // [depth]; the bias is undefined for rms
};

}  // namespace attend
