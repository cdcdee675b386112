#pragma once

#include <string>
#include <utility>

#include "attend/train/checkpoint.h"
#include "attend/train/train_config.h"

namespace attend::internal {

// Decides from settings and progress when training validates and ends, and how far it is.
class TrainLimits {
 public:
  // Both arguments must outlive this object.
  TrainLimits(const TrainConfig& config, const Checkpoint& state)
      : config_(config), state_(state) {}

  bool epoch_begins() const { return state_.handed_out.empty(); }
  bool out_of_time() const { return config_.minutes > 0 && state_.seconds >= 60 * config_.minutes; }
  // Whether all epochs or steps are done.
  bool at_limit() const;
  bool finished() const { return at_limit() || out_of_patience() || out_of_time(); }
  bool at_validation() const;
  // Whether a validation without improvement counts: the warm-up is over.
  bool counts_patience() const { return state_.step > config_.warmup_steps; }

  // The setting that ended the training, and its value.
  std::pair<std::string, double> ending() const;

  // Share of the training done after `step` steps, by the nearest limit. `within_epoch` is the
  // share of the epoch that was used in steps.
  double progress_made(int64_t step, double within_epoch) const;

 private:
  bool out_of_patience() const {
    return config_.patience > 0 && state_.stale_validations >= config_.patience;
  }

  const TrainConfig& config_;
  const Checkpoint& state_;
};

}  // namespace attend::internal
