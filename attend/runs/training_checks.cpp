#include <iterator>

#include "attend/base/error.h"
#include "attend/metrics/metric.h"
#include "attend/runs/training_checks-inl.h"

namespace attend::internal {

void check_sharing(const TrainOptions& options, const RunConfig& config) {
  if (!config.train.sequence_parallel) return;
  if (const std::string why = config.model.chosen().not_shared_reason(); !why.empty())
    fail("train.sequence_parallel: {}", why);
  if (config.text.source_kind() != nullptr)
    fail(
        "train.sequence_parallel: supports sources of tokens, not images, sounds, sets or "
        "molecules");
  if (config.train.replicas != 1)
    fail(
        "train.sequence_parallel: needs one replica per process, and train.replicas is {}; add "
        "--set train.replicas=1",
        config.train.replicas);
  if (options.placement != DevicePlacement())
    fail("train.sequence_parallel: needs the CPU; leave out --device and --place");
}

void check_work_for_all(const TrainOptions& options, const RunConfig& config, const PairData& data,
                        const Communicator& world) {
  if (config.train.sequence_parallel) return;
  const auto examples = std::ssize(data.train.examples);
  if (examples > 0 && examples < world.size())
    fail("{}: holds {} examples, fewer than the {} processes; start at most {}", options.data,
         examples, world.size(), examples);
}

void check_metric(const RunConfig& config, const PairModel& model) {
  const int64_t labels = model.target_vocabulary.size() - Vocabulary::unknown - 1;
  if (metric_named(config.train.metric).of_scores() && labels != 2)
    fail("train.metric = {}: needs two labels, and the data has {}; set it to {}",
         config.train.metric, labels, config.answer_kind().metric());
}

}  // namespace attend::internal
