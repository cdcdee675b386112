#include <algorithm>

#include "attend/train/train_limits-inl.h"

namespace attend::internal {

bool TrainLimits::at_limit() const {
  return state_.epoch >= config_.epochs || (config_.steps > 0 && state_.step >= config_.steps);
}

bool TrainLimits::at_validation() const {
  if (out_of_time() || at_limit()) return true;
  return config_.validate_steps > 0 ? state_.step % config_.validate_steps == 0 : epoch_begins();
}

std::pair<std::string, double> TrainLimits::ending() const {
  if (out_of_patience()) return {"train.patience", static_cast<double>(config_.patience)};
  if (state_.epoch >= config_.epochs) return {"train.epochs", static_cast<double>(config_.epochs)};
  if (at_limit()) return {"train.steps", static_cast<double>(config_.steps)};
  return {"train.minutes", config_.minutes};
}

double TrainLimits::progress_made(int64_t step, double within_epoch) const {
  double made =
      (static_cast<double>(state_.epoch) + within_epoch) / static_cast<double>(config_.epochs);
  if (config_.steps > 0)
    made = std::max(made, static_cast<double>(step) / static_cast<double>(config_.steps));
  if (config_.minutes > 0) made = std::max(made, state_.seconds / (60 * config_.minutes));
  return std::min(made, 1.0);
}

}  // namespace attend::internal
