#include "bench/plain_models.h"

#include <cmath>

#include "attend/models/pair_network.h"

namespace attend {
namespace {

using at::Tensor;
namespace nn = torch::nn;

}  // namespace

Tensor padding_of(const Tensor& source, const Tensor& lengths) {
  return at::arange(source.size(1), lengths.options()).unsqueeze(0) >= lengths.unsqueeze(1);
}

PlainTransformer::PlainTransformer(const PlainSizes& sizes)
    : dropout_(sizes.dropout),
      source_(register_module("source", nn::Embedding(sizes.source_tokens, sizes.depth))),
      target_(register_module("target", nn::Embedding(sizes.target_tokens, sizes.depth))),
      transformer_(register_module(
          "transformer", nn::Transformer(nn::TransformerOptions(sizes.depth, sizes.heads,
                                                                sizes.layers, sizes.layers)
                                             .dim_feedforward(sizes.feed_forward)
                                             .dropout(sizes.dropout)))),
      output_(register_module("output", nn::Linear(sizes.depth, sizes.target_tokens))) {}

Tensor PlainTransformer::embedded(nn::Embedding& embedding, const Tensor& tokens) const {
  const Tensor x = embedding->forward(tokens);
  const int64_t depth = x.size(2);
  const Tensor places = at::arange(x.size(0), x.options()).unsqueeze(1);
  const Tensor rates =
      at::exp(at::arange(0, depth, 2, x.options()) * (-std::log(10000.0) / double(depth)));
  const Tensor angles = places * rates;
  const Tensor positions = at::stack({angles.sin(), angles.cos()}, 2).flatten(1).unsqueeze(1);
  return at::dropout(x * std::sqrt(double(depth)) + positions, dropout_, is_training());
}

Tensor PlainTransformer::logits(const Batch& batch) {
  const Tensor before = shift_right(batch.target).t();
  const Tensor padding = padding_of(batch.source, batch.source_lengths);
  const Tensor mask = transformer_->generate_square_subsequent_mask(before.size(0));
  const Tensor y = transformer_->forward(embedded(source_, batch.source.t()),
                                         embedded(target_, before), {}, mask, {}, padding,
                                         padding_of(batch.target, batch.target_lengths), padding);
  return output_->forward(y);
}

Tensor PlainTransformer::encode(const Tensor& source, const Tensor& padding) {
  return transformer_->encoder.forward<Tensor>(embedded(source_, source.t()), Tensor(), padding);
}

Tensor PlainTransformer::decode(const Tensor& before, const Tensor& memory, const Tensor& padding) {
  const Tensor mask = transformer_->generate_square_subsequent_mask(before.size(0));
  const Tensor y = transformer_->decoder.forward<Tensor>(embedded(target_, before), memory, mask,
                                                         Tensor(), Tensor(), padding);
  return output_->forward(y[-1]);
}

PlainRecurrent::PlainRecurrent(const PlainSizes& sizes)
    : dropout_(sizes.dropout),
      source_(register_module("source", nn::Embedding(sizes.source_tokens, sizes.depth))),
      target_(register_module("target", nn::Embedding(sizes.target_tokens, sizes.depth))),
      encoder_(register_module(
          "encoder", nn::GRU(nn::GRUOptions(sizes.depth, sizes.hidden / 2).bidirectional(true)))),
      decoder_(register_module("decoder", nn::GRUCell(sizes.depth + sizes.hidden, sizes.hidden))),
      initial_(register_module("initial", nn::Linear(sizes.hidden, sizes.hidden))),
      query_(register_module("query", nn::Linear(sizes.hidden, sizes.hidden))),
      key_(register_module("key", nn::Linear(sizes.hidden, sizes.hidden))),
      score_(register_module("score", nn::Linear(sizes.hidden, 1))),
      readout_(
          register_module("readout", nn::Linear(2 * sizes.hidden + sizes.depth, 2 * sizes.hidden))),
      output_(register_module("output", nn::Linear(sizes.hidden, sizes.target_tokens))) {}

Tensor PlainRecurrent::logits(const Batch& batch) {
  const bool training = is_training();
  const auto embedded = [&](nn::Embedding& embedding, const Tensor& tokens) {
    return at::dropout(embedding->forward(tokens), dropout_, training);
  };
  const Tensor annotations =
      std::get<0>(encoder_->forward(embedded(source_, batch.source.t()))).transpose(0, 1);
  const Tensor keys = key_->forward(annotations);  // [B, S, H]
  const Tensor padding = padding_of(batch.source, batch.source_lengths);
  const Tensor before = embedded(target_, shift_right(batch.target).t());
  Tensor state = initial_->forward(annotations.mean(1)).tanh();
  std::vector<Tensor> steps;
  for (int64_t t = 0; t < before.size(0); ++t) {
    const Tensor scores =
        score_->forward((query_->forward(state).unsqueeze(1) + keys).tanh()).squeeze(2);
    const Tensor weights = scores.masked_fill(padding, -1e9).softmax(1);
    const Tensor context = at::bmm(weights.unsqueeze(1), annotations).squeeze(1);
    state = decoder_->forward(at::cat({before[t], context}, 1), state);
    steps.push_back(at::cat({state, context, before[t]}, 1));
  }
  const Tensor pieces = readout_->forward(at::stack(steps));  // [T, B, 2 H]
  const Tensor maxout = pieces.view({pieces.size(0), pieces.size(1), -1, 2}).amax(3);
  return output_->forward(at::dropout(maxout, dropout_, training));
}

}  // namespace attend
