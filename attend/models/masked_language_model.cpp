#include "attend/models/masked_language_model.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/hash.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t first_token = Vocabulary::unknown + 1;
constexpr double excluded = -std::numeric_limits<double>::infinity();

}  // namespace

MaskedLanguageModelConfig::MaskedLanguageModelConfig() { layers = 4; }

Settings MaskedLanguageModelConfig::settings() {
  Settings all = {
      {"model.masked_share", &masked_share, "share of tokens to mask and predict", 1e-3, 1},
      {"model.class_token", &class_token,
       "whether layers read an additional class vector, which a classifier with pooling class can "
       "start from"},
      {"model.output_layer", &output_layer, "whether a layer and a norm precede the output"}};
  append(all, SourceEncoderConfig::settings());
  return all;
}

void MaskedLanguageModelConfig::check() const {
  SourceEncoderConfig::check();
  if (layers == 0) fail("model.layers is 0; predicting masked tokens needs layers: set 1 or more");
  if (!output_layer && input_depth() != depth)
    fail(
        "model.embedding_depth is {}, and the output, which shares the token vectors, reads "
        "model.depth, {}; take model.output_layer = true",
        embedding_depth, depth);
}

// Computed in float32, as LibTorch multiplies integers by a share.
int64_t masked_tokens(int64_t known, double share) {
  const float wanted = static_cast<float>(known) * static_cast<float>(share);
  return std::max<int64_t>(1, std::llrint(wanted));
}

MaskedTokens mask_tokens_by_content(const Tensor& source, const Tensor& lengths, double share,
                                    int64_t tokens) {
  MaskedTokens all{source.clone(), at::full_like(source, Vocabulary::padding)};
  for (int64_t row = 0; row < source.size(0); ++row) {
    const auto length = lengths[row].item<int64_t>();
    const Tensor own = source[row].narrow(0, 0, length);
    Fnv1a hash;
    const Tensor ids = own.cpu().contiguous();
    for (int64_t i = 0; i < length; ++i)
      hash.add(static_cast<uint64_t>(ids.data_ptr<int64_t>()[i]));
    const MaskedTokens one =
        mask_tokens(own.unsqueeze(0), lengths.narrow(0, row, 1), share, tokens,
                    at::make_generator<at::CPUGeneratorImpl>(split_mix(hash.value()) >> 32));
    all.shown[row].narrow(0, 0, length).copy_(one.shown[0]);
    all.asked[row].narrow(0, 0, length).copy_(one.asked[0]);
  }
  return all;
}

MaskedTokens mask_tokens(const Tensor& source, const Tensor& lengths, double share, int64_t tokens,
                         const at::Generator& generator) {
  constexpr int64_t axis = 1;
  const Tensor outside = (at::arange(source.size(1), lengths.options()) >= lengths.unsqueeze(1))
                             .logical_or(source == Vocabulary::unknown);
  const Tensor draw = at::rand(source.sizes(), generator).masked_fill(outside.cpu(), 2);
  const Tensor known = outside.cpu().logical_not().sum(axis);
  std::vector<int64_t> counts;
  counts.reserve(static_cast<size_t>(known.size(0)));
  for (int64_t row = 0; row < known.size(0); ++row)
    counts.push_back(masked_tokens(known[row].item<int64_t>(), share));
  const Tensor count = at::tensor(counts).unsqueeze(axis);
  const Tensor asked =
      (draw.argsort(axis).argsort(axis) < count).logical_and(outside.cpu().logical_not());
  const Tensor way = at::rand(source.sizes(), generator);
  const Tensor other = at::randint(first_token, std::max(tokens, first_token + 1), source.sizes(),
                                   generator, at::kLong);
  const Tensor hidden = asked.logical_and(way < 0.8);
  const Tensor changed = asked.logical_and(way >= 0.8).logical_and(way < 0.9);
  const auto there = [&](const Tensor& x) { return x.to(source.device()); };
  return {at::where(there(changed), there(other), source).masked_fill(there(hidden), mask_token),
          source.masked_fill(there(asked.logical_not()), Vocabulary::padding)};
}

MaskedLanguageModel::MaskedLanguageModel(const MaskedLanguageModelConfig& config,
                                         const SourceShape& source)
    : TokenwiseNetwork(config, source,
                       {.class_token = config.class_token,
                        .output_layer = config.output_layer,
                        .output_depth = config.input_depth()}),
      masked_share_(config.masked_share) {
  config.check();
  bias_ = register_parameter("bias", torch::zeros({source.tokens()}));
}

Tensor MaskedLanguageModel::logits(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  return pass.watched(WatchedVectors::logits,
                      output().logits(read_off(vectors(source, lengths, pass), pass)));
}

Tensor MaskedLanguageModel::objective(const Batch& batch, const Pass& pass, double smoothing) {
  const Tensor &source = batch.source, &lengths = batch.source_lengths;
  const int64_t tokens = output().weight.size(0);
  const MaskedTokens masked =
      pass.generator ? mask_tokens(source, lengths, masked_share_, tokens, *pass.generator)
                     : mask_tokens_by_content(source, lengths, masked_share_, tokens);
  const auto loss = [&](const Tensor& read, const Tensor& asked) {
    return token_loss(read.reshape({-1, output().weight.size(1)}), output(),
                      to_device(asked).flatten(), pass, smoothing, Vocabulary::padding,
                      Vocabulary::first_target);
  };
  const Tensor read = read_off(vectors(masked.shown, lengths, pass), pass);
  const Tensor asked = (masked.asked != Vocabulary::padding).sum(1);
  if (pass.generator)
    return loss(read, masked.asked) *
           (batch.target_lengths.sum().item<double>() / std::max(1.0, asked.sum().item<double>()));
  // Groups rows with equal factors.
  std::map<double, std::vector<int64_t>> rows;
  for (int64_t row = 0; row < source.size(0); ++row)
    rows[batch.target_lengths[row].item<double>() / std::max(1.0, asked[row].item<double>())]
        .push_back(row);
  Tensor sum = at::zeros({}, read.options());
  for (const auto& [factor, own] : rows) {
    const Tensor index = at::tensor(own);
    sum = sum + factor * loss(read.index_select(0, index.to(read.device())),
                              masked.asked.index_select(0, index.to(masked.asked.device())));
  }
  return sum;
}

Tensor MaskedLanguageModel::log_probabilities(const Batch& batch, const Pass& pass) {
  return logits(as_asked(batch.source), batch.source_lengths, pass).log_softmax(-1, at::kDouble);
}

// Unknown tokens are to be filled in.
Tensor MaskedLanguageModel::as_asked(const Tensor& source) const {
  return source.masked_fill(source == Vocabulary::unknown, mask_token);
}

Tensor MaskedLanguageModel::answered(const Tensor& tokens, const Tensor& vectors) {
  Tensor guessed = output().logits(read_off(vectors, {}));
  guessed.slice(1, 0, first_token).fill_(excluded);
  const Tensor known = at::full_like(guessed, excluded).scatter_(1, tokens.unsqueeze(1), 0.0);
  return at::where((tokens == Vocabulary::unknown).unsqueeze(1), guessed.log_softmax(1), known);
}

}  // namespace attend
