#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "attend/base/enum_names.h"
#include "attend/nn/norm.h"
#include "attend/nn/pass.h"

namespace attend {

// Vectors that biases compare with queries or keys. own: each layer and head learns its own;
// shared: all layers share one vector per distance, and each layer maps it to heads by its own map
// of keys or queries (He et al. 2021); mapped: the same, by additional maps of each layer.
enum class DistanceSource { own, shared, mapped };
inline EnumNames names_of(DistanceSource) { return {"own", "shared", "mapped"}; }

struct DistanceVectorsConfig {
  int64_t rows = 0;         // distances or buckets of distances
  int64_t depth = 0;        // depth of the vectors between the layers
  bool normalised = false;  // layer normalisation of each vector
  double epsilon = 1e-5;    // added to the variance
  double dropout = 0;
};

// One trained vector per distance for all layers of a stack.
class DistanceVectors : public torch::nn::Module {
 public:
  explicit DistanceVectors(const DistanceVectorsConfig& config);

  // [1, rows, depth]
  at::Tensor vectors(const Pass& pass) const;

  int64_t rows() const { return table_.size(0); }

 private:
  double dropout_;
  at::Tensor table_;            // [rows, depth]
  std::shared_ptr<Norm> norm_;  // null unless normalised
};

}  // namespace attend
