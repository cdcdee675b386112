#include "attend/models/embedder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "attend/base/error.h"
#include "attend/base/trimmed.h"

namespace attend {
namespace {

using at::Tensor;

// torch.nn.LayerNorm's default, which sentence-transformers uses.
constexpr double text_norm_epsilon = 1e-5;

// [.., depth] of token vectors [.., S, depth] at the positions from `first`.
Tensor pooled(TextVector how, const Tensor& vectors, int64_t first, const Pass& pass) {
  const int64_t tokens = vectors.size(-2);
  switch (how) {
    case TextVector::mean:
      break;
    case TextVector::first:
      return vectors.select(-2, 0);
    case TextVector::last:
      return vectors.select(-2, tokens - 1);
    case TextVector::maximum: {
      const Tensor largest = at::zeros_like(vectors).scatter_(-2, vectors.argmax(-2, true), 1);
      return (vectors * pass.watched(WatchedVectors::gate, largest)).sum(-2);
    }
    case TextVector::weighted_mean: {
      const Tensor weights =
          at::arange(first + 1, first + tokens + 1, vectors.options()).unsqueeze(1);
      return (vectors * weights).sum(-2) / weights.sum();
    }
    case TextVector::mean_by_root:
      return vectors.sum(-2) / std::sqrt(static_cast<double>(tokens));
  }
  return vectors.mean(-2);
}

}  // namespace

EmbedderConfig::EmbedderConfig() { layers = 4; }

Settings EmbedderConfig::settings() {
  Settings all = {
      {"model.text_vector", &text_vector,
       fmt::format("how the vector of a text is made from its token vectors: {}; several, "
                   "separated by commas, are concatenated",
                   fmt::join(names_of(TextVector{}), ", "))},
      {"model.text_depth", &text_depth, "depth of a layer on top of the text vector; 0: no layer",
       0, 65536},
      {"model.text_activation", &text_activation,
       "activation of the layer on top of the text vector"},
      {"model.text_norm", &text_norm,
       "whether a norm with weights is on top of the text vector, before model.unit_length"},
      {"model.unit_length", &unit_length, "whether the text vector is scaled to length 1"},
      {"model.text_cut", &text_cut, "number of leading numbers of the text vector to keep; 0: all",
       0, 65536},
      {"model.text_similarity", &text_similarity, "how the vectors of two texts are compared"},
      {"model.prompts", &prompts,
       "named prompts that can precede a text, as a JSON object of names and texts; empty: none"},
      {"model.default_prompt", &default_prompt,
       "name of the prompt of texts for which none is named; empty: no prompt"},
      {"model.pool_prompt", &pool_prompt,
       "whether the tokens of a prompt are part of the text vector"}};
  append(all, SourceEncoderConfig::settings());
  return all;
}

std::vector<TextVector> EmbedderConfig::text_vectors() const {
  std::vector<TextVector> all;
  for (size_t begin = 0; begin <= text_vector.size();) {
    const size_t end = std::min(text_vector.find(',', begin), text_vector.size());
    const std::string_view name = trimmed(std::string_view(text_vector).substr(begin, end - begin));
    all.push_back(value_of<TextVector>(name, "model.text_vector"));
    begin = end + 1;
  }
  if (all.size() > names_of(TextVector{}).size())
    fail("model.text_vector has {} parts; name each way once", all.size());
  return all;
}

int64_t EmbedderConfig::pooled_depth() const { return depth * std::ssize(text_vectors()); }

int64_t EmbedderConfig::text_size() const { return text_depth > 0 ? text_depth : pooled_depth(); }

void EmbedderConfig::check() const {
  SourceEncoderConfig::check();
  if (text_depth == 0 && text_activation != TextActivation::none)
    fail("model.text_activation is {}, and model.text_depth 0; take a depth, or none",
         name_of(text_activation));
  if (text_cut > text_size())
    fail("model.text_cut is {}, and the vector of a text has {} numbers; lower it", text_cut,
         text_size());
  if (layers == 0)
    fail("model.layers is 0; token vectors need layers to read each other: set 1 or more");
}

Embedder::Embedder(const EmbedderConfig& config, const SourceShape& source)
    : text_vectors_(config.text_vectors()),
      text_activation_(config.text_activation),
      unit_length_(config.unit_length),
      text_cut_(config.text_cut),
      similarity_(config.text_similarity),
      prompts_(read_text_prompts("model", config.prompts, config.default_prompt)) {
  prompts_.are_pooled = config.pool_prompt;
  config.check();
  if (source.is_frames())
    fail("a model of type embedder reads only texts, not images, sounds, sets or molecules");
  encoder_ = register_module("encoder",
                             std::make_shared<SourceEncoder>(source, config, /*class_tokens=*/0));
  if (config.text_depth > 0)
    text_layer_ =
        register_module("text_layer", torch::nn::Linear(config.pooled_depth(), config.text_depth));
  if (config.text_norm)
    text_norm_ = register_module(
        "text_norm", torch::nn::LayerNorm(
                         torch::nn::LayerNormOptions({config.text_size()}).eps(text_norm_epsilon)));
}

Tensor Embedder::encodings(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  return encoder_->forward(to_device(source), lengths, pass.at_site({NetworkPart::encoder}))
      .vectors;
}

Tensor Embedder::text_vectors(const Tensor& vectors, int64_t skipped, const Pass& pass) const {
  const Tensor read = skipped > 0 ? vectors.slice(-2, skipped) : vectors;
  std::vector<Tensor> parts;
  for (const TextVector how : text_vectors_) parts.push_back(pooled(how, read, skipped, pass));
  Tensor vector = parts.size() == 1 ? parts[0] : at::cat(parts, -1);
  if (text_layer_) vector = at::linear(vector, text_layer_->weight, text_layer_->bias);
  if (text_activation_ == TextActivation::tanh)
    vector = pass.activated(vector, [](const Tensor& x) { return x.tanh(); });
  if (text_norm_)
    vector = pass.normalised({vector, text_norm_->weight, text_norm_->bias,
                              text_norm_->options.eps(), /*centred=*/true});
  // Epsilon of torch.nn.functional.normalize.
  if (unit_length_)
    vector = vector / pass.watched(WatchedVectors::gate,
                                   vector.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12));
  return text_cut_ > 0 ? vector.slice(-1, 0, text_cut_) : vector;
}

Tensor Embedder::objective(const Batch& /*batch*/, const Pass& /*pass*/, double /*smoothing*/) {
  fail(
      "a model of type embedder learns nothing by itself; begin another with its weights: attend "
      "train --init FOLDER, with model.type = classifier");
}

std::unique_ptr<DecodingState> Embedder::start(const Tensor& /*source*/, const Tensor& /*lengths*/,
                                               const Pass& /*pass*/) {
  fail(
      "a model of type embedder gives vectors and answers nothing; ask for them with attend embed "
      "or at /v1/embeddings, compare two texts with attend explain --pair, or begin a classifier "
      "with its weights: attend train --init FOLDER");
}

}  // namespace attend
