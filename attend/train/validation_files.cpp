#include <nlohmann/json.hpp>

#include "attend/train/validation_files-inl.h"

namespace attend::internal {

void ValidationFiles::forget_after(int64_t step) const {
  log_.truncate_after(step);
  kept_.drop_after(step);
}

void ValidationFiles::begin_events(int64_t step) {
  if (!task_.event_folder.empty()) events_.emplace(task_.event_folder, step);
}

void ValidationFiles::add(const TrainProgress& progress, const Checkpoint& state) {
  kept_.add(*task_.averaged, state.step);
  log_.append(nlohmann::json{{"step", progress.step},
                             {"epoch", progress.epoch},
                             {"train_loss", progress.loss},
                             {"valid_loss", progress.validation->loss},
                             {"metric", task_.metric},
                             {"valid_metric", progress.validation->metric},
                             {"best", progress.best},
                             {"learning_rate", progress.rate},
                             {"skipped_steps", state.step - state.updates},
                             {"rollbacks", state.rollbacks},
                             {"pairs_per_second", progress.pairs_per_second},
                             {"seconds", progress.seconds}}
                  .dump());
  if (!events_) return;
  events_->write(progress.step, {{"loss/training", progress.loss},
                                 {"loss/validation", progress.validation->loss},
                                 {"validation/" + task_.metric, progress.validation->metric},
                                 {"training/learning_rate", progress.rate},
                                 {"training/pairs_per_second", progress.pairs_per_second}});
}

}  // namespace attend::internal
