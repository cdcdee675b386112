#pragma once

#include <torch/nn/modules/embedding.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/nn/dropout.h"
#include "attend/nn/positions.h"

namespace attend {

// Where a network encodes positions: in the vectors, or, rotary, in the heads (HeadGroup).
// sinusoidal_halves has all sines before the cosines (SinusoidOrder).
enum class Positions { sinusoidal, learned, rotary, none, sinusoidal_halves };
inline EnumNames names_of(Positions) {
  return {"sinusoidal", "learned", "rotary", "none", "sinusoidal_halves"};
}

// The order of sinusoids that are added to vectors; none where no sinusoids are.
std::optional<SinusoidOrder> sinusoid_order(Positions positions);

// Vectors for tokens at positions: sqrt(depth) times the token's vector, or, where it is not
// `scaled`, once, plus that of its position (Vaswani et al. 2017, 3.4 and 3.5).
class PositionedEmbedding : public torch::nn::Module {
 public:
  // Learned positions are up to `maximum` of them; rotary and none add nothing here.
  PositionedEmbedding(int64_t tokens, int64_t depth, Positions positions, int64_t maximum,
                      bool scaled = true);

  // tokens [B, T] int64, the first at position `offset` -> [B, T, depth]. With a generator, dropped
  // by `dropout`. Error when learned positions end before the last token. Over a SharedSequence the
  // tokens are those that are here.
  at::Tensor forward(const at::Tensor& tokens, int64_t offset, double dropout, const Pass& pass);

  // The same of one token [N] of each sequence, each at a position of its own, to be decoded: [N,
  // depth]. Where no gradients are recorded, float32 on the CPU is computed without LibTorch, whose
  // calls take longer than this does.
  at::Tensor next(const at::Tensor& tokens, const std::vector<int64_t>& positions);

  // The number of positions; unlimited unless they are learned.
  int64_t positions() const;

  const at::Tensor& weight() const { return embedding_->weight; }  // [tokens, depth]

 private:
  // What is added at positions from `first` up to `end`, [positions, depth]; undefined where
  // nothing is.
  at::Tensor position_vectors(int64_t first, int64_t end, const at::TensorOptions& options);

  // As sinusoidal_positions(); those of the first positions are kept.
  at::Tensor sinusoids(int64_t count, int64_t offset, const at::TensorOptions& options);

  std::optional<SinusoidOrder> sinusoids_;
  double scale_;
  torch::nn::Embedding embedding_{nullptr};
  std::shared_ptr<LearnedPositions> learned_;  // null where they are not learned
  std::mutex mutex_;
  at::Tensor kept_;  // [positions, depth] float32 on the CPU, or undefined
};

}  // namespace attend
