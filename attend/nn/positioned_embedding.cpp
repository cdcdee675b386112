#include "attend/nn/positioned_embedding.h"

#include <cmath>

namespace attend {

PositionedEmbedding::PositionedEmbedding(int64_t symbols, int64_t depth,
                                         const std::string& positions, int64_t maximum)
    : sinusoidal_(positions == "sinusoidal"),
      scale_(std::sqrt(static_cast<double>(depth))),
      embedding_(register_module("symbols", torch::nn::Embedding(symbols, depth))) {
  torch::nn::init::normal_(embedding_->weight, 0, 1 / scale_);
  if (positions == "learned")
    learned_ = register_module("positions", std::make_shared<LearnedPositions>(maximum, depth));
}

at::Tensor PositionedEmbedding::forward(const at::Tensor& symbols, int64_t offset, double dropout,
                                        const Noise& noise) {
  at::Tensor vectors = embedding_->forward(symbols) * scale_;
  if (sinusoidal_)
    vectors =
        vectors + sinusoidal_positions(symbols.size(1), vectors.size(2), offset, vectors.options());
  if (learned_) vectors = learned_->forward(vectors, offset);
  return attend::dropout(vectors, dropout, noise);
}

std::vector<std::string> position_choices() { return {"sinusoidal", "learned", "rotary", "none"}; }

}  // namespace attend
