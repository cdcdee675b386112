#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attend/nn/positioned_embedding.h"

namespace attend {

// What packed steps read of a PositionedEmbedding, whose vectors of positions it makes once.
class PackedEmbedding {
 public:
  // Float32 on the CPU.
  explicit PackedEmbedding(std::shared_ptr<const PositionedEmbedding> embedding);

  // Tokens [N] int64 at positions [N], each at its own -> [N, depth]: what the embedding gives.
  at::Tensor rows(const at::Tensor& tokens, const std::vector<int64_t>& positions) const;

 private:
  std::shared_ptr<const PositionedEmbedding> embedding_;
  at::Tensor positions_;  // [kept, depth]; undefined where nothing is added
};

}  // namespace attend
