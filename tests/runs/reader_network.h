#pragma once

#include <torch/nn/modules/embedding.h>

#include <memory>

#include "attend/models/model_type.h"
#include "attend/models/pair_network.h"
#include "attend/models/source_input.h"
#include "attend/nn/attention_trace.h"
#include "attend/nn/dropout.h"
#include "attend/nn/linear.h"
#include "attend/nn/multi_head_state.h"
#include "attend/nn/positions.h"
#include "attend/nn/shared_sequence.h"
#include "attend/nn/token_loss.h"
#include "attend/text/vocabulary.h"

namespace attend::test {

struct ReaderConfig {
  int64_t depth = 16;
  int64_t maximum_source_length = 8;

  Settings settings() { return {{"model.depth", &depth, "depth of a letter's vector", 1, 1024}}; }
  void check() const {}
  std::string not_shared_reason() const { return {}; }
};

// A network with custom embeddings that computes each sound from the letters it attends to. Uses
// everything that a type may report or support.
class Reader : public PairNetwork {
 public:
  Reader(const ReaderConfig& config, const SourceShape& source, int64_t target_tokens) {
    const int64_t depth = config.depth;
    letters_ = register_module("letters", torch::nn::Embedding(source.tokens(), depth));
    sounds_ = register_module("sounds", torch::nn::Embedding(target_tokens, depth));
    query_ = register_module("query", Linear(depth, depth));
    key_ = register_module("key", Linear(depth, depth));
    output_ = register_module("output", Linear(2 * depth, target_tokens));
  }

  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override {
    const SharedSequence target(pass, batch.target.size(1), batch.source.size(1));
    const at::Tensor vectors =
        vectors_of(target.own(shift_right(batch.target)), 0,
                   read(batch.source, batch.source_lengths, pass), pass.over(target));
    return token_loss(vectors.flatten(0, 1), {output_->weight, output_->bias},
                      target.own(batch.target).flatten(), pass, smoothing, Vocabulary::padding,
                      Vocabulary::first_target);
  }

  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override {
    const Memory memory = read(batch.source, batch.source_lengths, pass);
    return output_->forward(vectors_of(shift_right(batch.target), 0, memory, pass), pass)
        .log_softmax(-1, at::kDouble);
  }

  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override {
    return std::make_unique<State>(*this, read(source, lengths, pass));
  }

  bool attends() const override { return true; }

 private:
  static constexpr Site reading_source{NetworkPart::decoder, 0, true};

  struct Memory {
    at::Tensor keys, letters, lengths;
  };

  struct State : DecodingState {
    State(Reader& its_network, Memory its_memory)
        : network(its_network), memory(std::move(its_memory)) {}

    StepResult step(const at::Tensor& tokens, bool with_weights, const Pass& pass) override {
      AttentionTrace trace;
      const at::Tensor vector =
          network.vectors_of(tokens.unsqueeze(1), position++, memory, pass.watched_by(trace));
      StepResult result;
      result.log_probabilities = network.output_->forward(vector, pass).squeeze(1).log_softmax(-1);
      if (with_weights) result.weights = trace.mean_weights(reading_source).squeeze(1);
      return result;
    }

    void reorder(const at::Tensor& rows, bool same_sources) override {
      if (same_sources) return;
      for (at::Tensor* each : {&memory.keys, &memory.letters, &memory.lengths})
        *each = selected_rows(*each, rows);
    }

    Reader& network;
    Memory memory;
    int64_t position = 0;
  };

  static at::Tensor placed(const at::Tensor& x, int64_t offset, const Pass& pass) {
    return by_runs(
        x, positions_here(pass, offset, x.size(1)), [](const at::Tensor& part, int64_t first) {
          return part + sinusoidal_positions(part.size(1), part.size(2), first, part.options());
        });
  }

  Memory read(const at::Tensor& source, const at::Tensor& lengths, const Pass& pass) {
    const SharedSequence shared(pass, source.size(1));
    const Pass here = pass.at_site({NetworkPart::encoder}).over(shared);
    const at::Tensor letters =
        here.watched(WatchedVectors::input, letters_->forward(shared.own(source)));
    return {key_->forward(placed(letters, 0, here), here), letters, lengths};
  }

  // Inputs of the output layer for each sound, [B, T, 2 depth].
  at::Tensor vectors_of(const at::Tensor& before, int64_t offset, const Memory& memory,
                        const Pass& pass) {
    const Pass here = pass.at_site(reading_source);
    const at::Tensor own = placed(sounds_->forward(before), offset, here);
    const at::Tensor context =
        here.attention(query_->forward(own, here), memory.keys, memory.letters,
                       {.scope = key_lengths(memory.lengths)})
            .context;
    return attend::dropout(at::cat({context, own}, 2), 0.1, here);
  }

  torch::nn::Embedding letters_{nullptr}, sounds_{nullptr};
  Linear query_{nullptr}, key_{nullptr}, output_{nullptr};
};

inline std::unique_ptr<NetworkConfig> reader_config() {
  return std::make_unique<NetworkConfigOf<ReaderConfig>>(
      [](const ReaderConfig& config, const SourceShape& source,
         const TargetShape& target) -> std::shared_ptr<PairNetwork> {
        return std::make_shared<Reader>(config, source, target.tokens);
      });
}

}  // namespace attend::test
