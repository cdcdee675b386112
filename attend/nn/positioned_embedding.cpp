#include "attend/nn/positioned_embedding.h"

#include <torch/nn/init.h>

#include <cmath>
#include <limits>

#include "attend/nn/shared_sequence.h"

namespace attend {

PositionedEmbedding::PositionedEmbedding(int64_t tokens, int64_t depth, Positions positions,
                                         int64_t maximum)
    : sinusoidal_(positions == Positions::sinusoidal),
      scale_(std::sqrt(static_cast<double>(depth))),
      embedding_(register_module("tokens", torch::nn::Embedding(tokens, depth))) {
  torch::nn::init::normal_(embedding_->weight, 0, 1 / scale_);
  if (positions == Positions::learned)
    learned_ = register_module("positions", std::make_shared<LearnedPositions>(maximum, depth));
}

at::Tensor PositionedEmbedding::forward(const at::Tensor& tokens, int64_t offset, double dropout,
                                        const Pass& pass) {
  at::Tensor vectors = pass.watched(WatchedVectors::input, embedding_->forward(tokens) * scale_);
  const Runs runs = positions_here(pass, offset, tokens.size(1));
  if (sinusoidal_)
    vectors = by_runs(vectors, runs, [](const at::Tensor& x, int64_t first) {
      return x + sinusoidal_positions(x.size(1), x.size(2), first, x.options());
    });
  if (learned_)
    vectors = by_runs(vectors, runs, [this](const at::Tensor& x, int64_t first) {
      return learned_->forward(x, first);
    });
  return attend::dropout(vectors, dropout, pass);
}

at::Tensor PositionedEmbedding::position_vectors(int64_t count, int64_t first) const {
  const at::Tensor& table = weight();
  if (sinusoidal_) return sinusoidal_positions(count, table.size(1), first, table.options());
  return learned_ ? learned_->forward(at::zeros({count, table.size(1)}, table.options()), first)
                  : at::Tensor();
}

int64_t PositionedEmbedding::positions() const {
  return learned_ ? learned_->maximum() : std::numeric_limits<int64_t>::max();
}

}  // namespace attend
