#include "attend/base/error.h"
#include "attend/train/data_cursor-inl.h"

namespace attend::internal {

void DataCursor::find(const std::string& path) {
  if (!state_.handed_out.empty()) source_.regroup(state_.handed_out[0].size);
  source_.begin(state_.epoch);
  for (const BatchRun& run : state_.handed_out) {
    source_.regroup(run.size);
    for (int64_t i = 0; i < run.batches; ++i) {
      if (source_.done() >= 1)
        fail(
            "{}: was taken after {} batches of epoch {}, which has fewer; "
            "give the train.batch and train.batch_tokens that it was taken with",
            path, run.batches, state_.epoch + 1);
      source_.next();
    }
  }
  source_.regroup(size_);
}

std::vector<std::vector<EncodedPair>> DataCursor::next_batches() {
  std::vector<std::vector<EncodedPair>> batches;
  batches.reserve(static_cast<size_t>(accumulate_));
  while (static_cast<int64_t>(batches.size()) < accumulate_ &&
         (batches.empty() || source_.done() < 1)) {
    batches.push_back(source_.next());
    pairs_done_ += static_cast<int64_t>(batches.back().size());
    auto& runs = state_.handed_out;
    if (runs.empty() || runs.back().size != size_) runs.push_back({size_, 0});
    ++runs.back().batches;
  }
  return batches;
}

void DataCursor::end_step() {
  if (source_.done() < 1) return;
  ++state_.epoch;
  state_.handed_out.clear();
}

}  // namespace attend::internal
