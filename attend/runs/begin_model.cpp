#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/trimmed.h"
#include "attend/data/span_target.h"
#include "attend/data/stream.h"
#include "attend/models/model_folder.h"
#include "attend/models/model_size.h"
#include "attend/models/new_pair_model.h"
#include "attend/nn/devices.h"
#include "attend/parallel/communicator.h"
#include "attend/runs/begin_model-inl.h"
#include "attend/runs/training_checks-inl.h"

namespace attend::internal {
namespace {

PairModel new_model(const RunConfig& config, const PairData& data) {
  TokenCounts counts;
  if (data.graph.graph != nullptr) {
    counts.target = data.train.targets.counts();
    counts.add_graph(data.graph);
    return make_pair_model(config.text, config.model, counts);
  }
  if (data.stream.source.empty() && data.text.empty())
    return make_pair_model(config.text, config.model, data.train);
  const TextCodecs codecs = make_codecs(config.text);
  if (!data.text.empty()) {
    counts.add_text(data.text, codecs.target);
    return make_pair_model(config.text, config.model, counts);
  }
  ExampleStream in_order({data.stream}, 1, 0, 0);
  for (Example example; in_order.next(example);) counts.add(example, codecs);
  return make_pair_model(config.text, config.model, counts);
}

bool has_empty_target(const TokenisedExamples& tokenised) {
  const auto is_empty = [](const std::string& target) {
    return trimmed(span_text(target)).empty();
  };
  return std::any_of(tokenised.examples.begin(), tokenised.examples.end(),
                     [&](const Example& example) {
                       return std::any_of(example.targets.begin(), example.targets.end(), is_empty);
                     });
}

}  // namespace

PairModel begin_model(const TrainOptions& options, const RunConfig& config, const PairData& data,
                      const std::optional<InitialModel>& initial, ModelFolder* folder,
                      const Say& say) {
  PairModel model = new_model(config, data);
  if (initial) begin_from(*initial, options, model, say);
  // If training has questions without an answer, answers may be empty by default.
  if (model.answer_kind().is_span() && has_empty_target(data.train)) model.decode.no_answer = true;
  check_memory(model, config.train.replicas, options.world ? options.world->processes_here() : 1);
  check_labels(model, data.train, data.train_file);
  if (!check_labels(model, data.valid, data.valid_file, say))
    fail("{}: no label of the validation data is one of training; {}", data.valid_file,
         data.held_out ? "it was held out of this file: check that the columns of sources and "
                         "targets are not swapped, or give --valid FILE"
                       : "give other validation data");
  check_metric(config, model);
  model.network->place(devices_of(options.placement));
  if (!folder) return model;
  folder->create();
  write_settings(options, config.train);
  save_description(model, options.out);
  return model;
}

}  // namespace attend::internal
