#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "attend/explain/explain_answer.h"
#include "attend/inference/predictor.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace network_passes_test {

using test::small_model;
using test::SmallModel;

// Counts the passes of another network over whole answers.
class CountedNetwork : public PairNetwork {
 public:
  explicit CountedNetwork(std::shared_ptr<PairNetwork> network)
      : network_(register_module("network", std::move(network))) {}

  at::Tensor objective(const Batch& batch, const Pass& pass, double smoothing) override {
    return network_->objective(batch, pass, smoothing);
  }
  at::Tensor log_probabilities(const Batch& batch, const Pass& pass) override {
    ++passes_;
    return network_->log_probabilities(batch, pass);
  }
  std::unique_ptr<DecodingState> start(const at::Tensor& source, const at::Tensor& lengths,
                                       const Pass& pass) override {
    return network_->start(source, lengths, pass);
  }
  TopVectors top_vectors(int64_t source_length, int64_t target_length) const override {
    return network_->top_vectors(source_length, target_length);
  }
  bool wants_equal_lengths() const override { return network_->wants_equal_lengths(); }
  bool attends() const override { return network_->attends(); }

  int64_t passes() const { return passes_; }

 private:
  std::shared_ptr<PairNetwork> network_;
  int64_t passes_ = 0;
};

int64_t passes_of(const std::string& name, ExplanationRequest request) {
  const SmallModel small = small_model(name);
  PairModel counted = small.model;
  const auto network = std::make_shared<CountedNetwork>(counted.network);
  network->eval();
  counted.network = network;
  const Model model = Predictor::as_model(
      std::make_unique<Predictor>(std::move(counted), ModelOptions{.threads = 1}));
  request.text = small.source;
  request.target = small.target;
  explain_answer(model, request);
  return network->passes();
}

// A page traces the answer, and repeated tokens if the network has self-attention. The lens runs
// the network once per layer.
TEST(NetworkPasses, OfAPage) {
  const std::pair<const char*, int64_t> wanted[] = {{"seq2seq", 1},  // the demo's type
                                                    {"seq2seq_with_layers", 3},
                                                    {"transformer", 4},
                                                    {"lm", 4},
                                                    {"tagger", 4},
                                                    {"classifier_fixed", 1},
                                                    {"classifier_class", 4}};
  ExplanationRequest request;
  request.file = &file_of(value_of<ExplainFormat>("page", "format"));
  for (const auto& [name, passes] : wanted) EXPECT_EQ(passes_of(name, request), passes) << name;
}

TEST(NetworkPasses, OfMaps) {
  ExplanationRequest heads, lens, without, both;
  EXPECT_EQ(passes_of("classifier_class", {}), 1);
  heads.show.view = ExplanationView::heads;
  EXPECT_EQ(passes_of("transformer", heads), 2) << "the answer, and repeated tokens";
  lens.show.view = ExplanationView::lens;
  EXPECT_EQ(passes_of("transformer", lens), 3);
  without.without = {"encoder.1.head.1"};
  EXPECT_EQ(passes_of("transformer", without), 2);
  both.file = &file_of(value_of<ExplainFormat>("page", "format"));
  both.with_maps = true;
  both.show.view = ExplanationView::heads;
  EXPECT_EQ(passes_of("transformer", both), passes_of("transformer", {.file = both.file}))
      << "they share their parts";
}

}  // namespace network_passes_test
}  // namespace attend
