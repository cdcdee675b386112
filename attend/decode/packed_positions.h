#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "attend/nn/learned_attention.h"
#include "attend/nn/rotation.h"

namespace attend {

// Positions in heads of packed steps: biases of the scores, and rotations.

// A bias that depends only on the distance of query and key, as numbers per head.
class PackedBias {
 public:
  // Whether every part of a bias in text form depends only on the distance.
  static bool takes(const std::string& bias);

  PackedBias() = default;  // no bias
  // `depth` of a head. Parameters of the bias are copied from `all`, with names that begin with
  // `prefix`. Numbers are divided by `scale`, the factor of the scores.
  PackedBias(const AttentionChoices& choices, int64_t heads, int64_t depth, double scale,
             const torch::OrderedDict<std::string, at::Tensor>& all, const std::string& prefix);

  bool empty() const { return bias_ == nullptr; }

  // float32 [heads, 2 room - 1]: the number of distance j - i (key - query) in column j - i + room
  // - 1.
  at::Tensor table(int64_t room) const;

 private:
  static constexpr int64_t first_room = 256;

  at::Tensor made_table(int64_t room) const;

  std::shared_ptr<const LearnedAttention> bias_;
  int64_t heads_ = 0, depth_ = 0;
  double scale_ = 1;
  at::Tensor first_;  // table(first_room)
};

// Rotation of the columns of heads by position.
class PackedRotation {
 public:
  PackedRotation() = default;  // none
  // `depth` of a head, without padding.
  PackedRotation(const Rotation& rotation, int64_t depth);

  bool empty() const { return frequencies_.empty(); }

  // Cosines and sines of rows at these positions: [rows][pairs][2].
  void turns(const std::vector<int64_t>& positions, std::vector<float>& out) const;

  // Rotates heads of `depth` numbers, one after another from x + row * stride, by such turns.
  struct Rows {
    int64_t rows, heads, depth, stride;
    float* x;
  };
  void rotate(const Rows& given, const std::vector<float>& turns) const;

 private:
  std::vector<double> frequencies_;
  double magnitude_ = 1;
  bool halves_ = false;
};

}  // namespace attend
