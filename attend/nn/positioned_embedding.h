#pragma once

#include <torch/nn/modules/embedding.h>

#include <memory>

#include "attend/base/enum_names.h"
#include "attend/nn/dropout.h"
#include "attend/nn/positions.h"

namespace attend {

// Where a network encodes positions: in the vectors, or, rotary, in the heads (HeadGroup).
enum class Positions { sinusoidal, learned, rotary, none };
inline EnumNames names_of(Positions) { return {"sinusoidal", "learned", "rotary", "none"}; }

// Vectors for tokens at positions: sqrt(depth) times the token's vector, plus that of its position
// (Vaswani et al. 2017, 3.4 and 3.5).
class PositionedEmbedding : public torch::nn::Module {
 public:
  // Learned positions are up to `maximum` of them; rotary and none add nothing here.
  PositionedEmbedding(int64_t tokens, int64_t depth, Positions positions, int64_t maximum);

  // tokens [B, T] int64, the first at position `offset` -> [B, T, depth]. With a generator, dropped
  // by `dropout`. Error when learned positions end before the last token. Over a SharedSequence the
  // tokens are those that are here.
  at::Tensor forward(const at::Tensor& tokens, int64_t offset, double dropout, const Pass& pass);

  // The number of positions; unlimited unless they are learned.
  int64_t positions() const;

  const at::Tensor& weight() const { return embedding_->weight; }  // [tokens, depth]
  double scale() const { return scale_; }                          // what it is multiplied by

  // What is added at `count` positions from `first` on, [count, depth]; undefined where nothing is.
  at::Tensor position_vectors(int64_t count, int64_t first = 0) const;

 private:
  bool sinusoidal_;
  double scale_;
  torch::nn::Embedding embedding_{nullptr};
  std::shared_ptr<LearnedPositions> learned_;  // null where they are not learned
};

}  // namespace attend
