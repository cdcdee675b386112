#pragma once

#include <torch/nn/modules/embedding.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/nn/dropout.h"
#include "attend/nn/norm.h"
#include "attend/nn/positions.h"

namespace attend {

// Encoding of positions in a network: added to the vectors, or, for rotary, applied in the heads
// (HeadGroup). SinusoidOrder describes the three kinds of sinusoids.
enum class Positions { sinusoidal, learned, rotary, none, sinusoidal_halves, sinusoidal_fairseq };
inline EnumNames names_of(Positions) {
  return {"sinusoidal", "learned", "rotary", "none", "sinusoidal_halves", "sinusoidal_fairseq"};
}

// The order of sinusoids that are added to vectors; empty if none are added.
std::optional<SinusoidOrder> sinusoid_order(Positions positions);

struct EmbeddingForm {
  Positions positions = Positions::sinusoidal;  // rotary and none add nothing here
  int64_t maximum = 0;                          // number of learned positions
  bool scaled = true;                           // multiplies token vectors by sqrt(depth)
  std::optional<double> norm_epsilon = {};  // epsilon of a layer norm of the sum; empty: no norm
  // Groups of tokens with one vector, the one of the first token. Each gets the sum of their
  // gradients, so that training keeps them equal. No token is in two groups.
  std::vector<std::vector<int64_t>> equal = {};
};

// Vectors for tokens at positions: sqrt(depth) times the token's vector, or the vector itself if
// not `scaled`, plus the vector of the position (Vaswani et al. 2017, 3.4 and 3.5), and optionally
// a layer norm of the sum.
class PositionedEmbedding : public torch::nn::Module {
 public:
  PositionedEmbedding(int64_t tokens, int64_t depth, const EmbeddingForm& form);
  // Shares the token vectors of `tokens`; positions and the norm are separate. Only `tokens`
  // registers the shared vectors as a module.
  PositionedEmbedding(const PositionedEmbedding& tokens, const EmbeddingForm& form);

  // Draws the token vectors anew from a normal distribution. At first, its standard deviation is
  // 1 / sqrt(depth).
  void draw(double deviation);

  // tokens [B, T] int64, the first at position `offset` -> [B, T, depth]. With a generator, applies
  // `dropout`. Error if learned positions end before the last token, or if a group of equal tokens
  // has one that is not there. Over a SharedSequence, the tokens are the positions of this process.
  at::Tensor forward(const at::Tensor& tokens, int64_t offset, double dropout, const Pass& pass);

  // Decoding: vectors [N, depth] of one token [N] per sequence, each at its own position, without
  // dropout. For float32 on the CPU without gradients it does not call LibTorch, because its call
  // overhead would exceed the computation.
  at::Tensor next(const at::Tensor& tokens, const std::vector<int64_t>& positions);

  // Number of positions; unlimited unless they are learned.
  int64_t positions() const;

  const at::Tensor& weight() const { return embedding_->weight; }  // [tokens, depth]

 private:
  // Vectors added at positions `first` up to `end` (exclusive), [positions, depth]; undefined if
  // none.
  at::Tensor position_vectors(int64_t first, int64_t end, const at::TensorOptions& options);

  // As sinusoidal_positions(); caches the first positions.
  at::Tensor sinusoids(int64_t count, int64_t offset, const at::TensorOptions& options);

  // `is_own`: registers `embedding` and draws its weights.
  PositionedEmbedding(torch::nn::Embedding embedding, const EmbeddingForm& form, bool is_own);

  std::optional<SinusoidOrder> sinusoids_;
  double scale_;
  std::optional<int64_t> absent_;            // a token of the groups that is not there
  std::vector<std::vector<int64_t>> equal_;  // see EmbeddingForm
  torch::nn::Embedding embedding_{nullptr};
  std::shared_ptr<Norm> norm_;                 // null without a norm
  std::shared_ptr<LearnedPositions> learned_;  // null unless positions are learned
  std::mutex mutex_;
  at::Tensor kept_;  // [positions, depth] float32 on the CPU, or undefined
};

}  // namespace attend
