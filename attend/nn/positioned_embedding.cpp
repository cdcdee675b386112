#include "attend/nn/positioned_embedding.h"

#include <torch/nn/init.h>

#include <cmath>

#include "attend/nn/site.h"

namespace attend {

PositionedEmbedding::PositionedEmbedding(int64_t tokens, int64_t depth,
                                         const std::string& positions, int64_t maximum)
    : sinusoidal_(positions == "sinusoidal"),
      scale_(std::sqrt(static_cast<double>(depth))),
      embedding_(register_module("symbols", torch::nn::Embedding(tokens, depth))) {
  torch::nn::init::normal_(embedding_->weight, 0, 1 / scale_);
  if (positions == "learned")
    learned_ = register_module("positions", std::make_shared<LearnedPositions>(maximum, depth));
}

at::Tensor PositionedEmbedding::forward(const at::Tensor& tokens, int64_t offset, double dropout,
                                        const DropoutGenerator& generator) {
  at::Tensor vectors = watched(WatchedVectors::input, embedding_->forward(tokens) * scale_);
  if (sinusoidal_)
    vectors =
        vectors + sinusoidal_positions(tokens.size(1), vectors.size(2), offset, vectors.options());
  if (learned_) vectors = learned_->forward(vectors, offset);
  return attend::dropout(vectors, dropout, generator);
}

std::vector<std::string> position_choices() { return {"sinusoidal", "learned", "rotary", "none"}; }

}  // namespace attend
