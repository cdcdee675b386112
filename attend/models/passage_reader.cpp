#include "attend/models/passage_reader.h"

#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/nn/dropout.h"
#include "attend/nn/multi_head_state.h"

namespace attend {
namespace {

using at::Tensor;

const PairForm& pair_form(const SourceShape& source) {
  if (const auto* form = source.as<PairForm>()) return *form;
  fail(
      "model.type is reader, which reads a question and a passage; set data.pairs = always and "
      "give "
      "texts");
}

}  // namespace

PassageReaderConfig::PassageReaderConfig() { layers = 1; }

Settings PassageReaderConfig::weight_settings() {
  Settings all = SourceEncoderConfig::weight_settings();
  all.push_back(sides_setting());
  return all;
}

Settings PassageReaderConfig::settings() {
  Settings all = {
      {"model.word_dropout", &word_dropout, "probability of replacing words by unknown in training",
       0, 0.95},
      {"model.output_dropout", &output_dropout,
       "dropout probability of the vectors before the output", 0, 0.95},
      {"model.output_layer", &output_layer, "whether a layer and a norm precede the output"},
      {"model.overlap", &overlap,
       "number of tokens that consecutive parts of a long passage share, at most half of a part", 0,
       1 << 20},
      sides_setting()};
  append(all, SourceEncoderConfig::settings());
  return all;
}

PassageReader::PassageReader(const PassageReaderConfig& config, const SourceShape& source)
    : EncoderNetwork(config, source, {.output_layer = config.output_layer}),
      word_dropout_(config.word_dropout),
      output_dropout_(config.output_dropout),
      pair_tokens_(pair_form(source).tokens),
      closing_(pair_form(source).closing),
      output_(register_module("output", Linear(config.depth, 2))) {}

Tensor PassageReader::logits(const Tensor& source, const Tensor& lengths, const Pass& pass) {
  const Tensor read =
      read_off(vectors(drop_words(source, word_dropout_, pass, pair_tokens_), lengths, pass), pass);
  return output_->forward(attend::dropout(read, output_dropout_, pass), pass);
}

Tensor PassageReader::possible(const Tensor& source, const Tensor& lengths) const {
  const Tensor places = at::arange(source.size(1), source.options()).unsqueeze(0);
  const Tensor ends = lengths.to(source.device()).unsqueeze(1) - closing_;
  return (source >= pair_tokens_).logical_and(places < ends).logical_or(places == 0);
}

Tensor PassageReader::position_log_probabilities(const Tensor& source, const Tensor& lengths,
                                                 const Pass& pass, at::ScalarType type) {
  const Tensor scores =
      pass.watched(WatchedVectors::logits, logits(source, lengths, pass).transpose(1, 2)).to(type);
  const Tensor allowed = possible(source, lengths).to(scores.device()).unsqueeze(1);
  return scores.masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity())
      .log_softmax(2);
}

Tensor PassageReader::log_probabilities(const Batch& batch, const Pass& pass) {
  return position_log_probabilities(batch.source, batch.source_lengths, pass, at::kDouble);
}

Tensor PassageReader::objective(const Batch& batch, const Pass& pass, double smoothing) {
  const Tensor all =
      position_log_probabilities(batch.source, batch.source_lengths, pass, at::kFloat);
  const Tensor wanted = to_device(batch.target).unsqueeze(2);
  const Tensor loss = -all.gather(2, wanted).sum();
  if (smoothing == 0) return loss;
  const Tensor allowed = possible(batch.source, batch.source_lengths).to(all.device()).unsqueeze(1);
  const Tensor mean =
      all.masked_fill(allowed.logical_not(), 0).sum(2) / allowed.sum(2).to(all.scalar_type());
  return (1 - smoothing) * loss - smoothing * mean.sum();
}

TopVectors PassageReader::top_vectors_of(const Batch& batch) const {
  return {0, at::eye(batch.source.size(1)).index_select(0, batch.target[0])};
}

// The whole network is one step, which depends only on the source.
struct PassageReader::State : DecodingState {
  State(PassageReader& its_network, Tensor its_source, Tensor its_lengths)
      : network(its_network), source(std::move(its_source)), lengths(std::move(its_lengths)) {}

  StepResult step(const Tensor& /*tokens*/, bool /*with_weights*/, const Pass& pass) override {
    StepResult result;
    result.log_probabilities =
        network.position_log_probabilities(source, lengths, pass, at::kDouble).flatten(1);
    return result;
  }

  void reorder(const Tensor& rows, bool same_sources) override {
    if (same_sources) return;
    source = selected_rows(source, rows);
    lengths = selected_rows(lengths, rows);
  }

  PassageReader& network;
  Tensor source, lengths;
};

std::unique_ptr<DecodingState> PassageReader::start(const Tensor& source, const Tensor& lengths,
                                                    const Pass& /*pass*/) {
  return std::make_unique<State>(*this, source, lengths);
}

}  // namespace attend
