#include "attend/runs/size_defaults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

namespace attend {
namespace {

// Few pairs need small batches to get enough steps: 8,000 pairs get batches of 32, 64,000 pairs
// batches of 128. On 8,000 words, batches of 32 and 30 epochs leave 15.2 % of Dutch words wrong;
// batches of 128 and 20 epochs left more than twice this share.
constexpr int64_t batches_an_epoch = 250, least_batch = 16, max_batch = 128;
constexpr int64_t wanted_steps = 7500, least_epochs = 20, max_epochs = 100;

double* dropout_of(RunConfig& config) {
  for (const Setting& setting : config.model.settings())
    if (setting.key == "model.dropout" && setting.minimum < 0)
      return std::get<double*>(setting.value);
  return nullptr;
}

int64_t batch_for(int64_t pairs) {
  if (pairs == 0) return max_batch;
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(pairs / batches_an_epoch, 1));
  return std::clamp(static_cast<int64_t>(std::bit_ceil(wanted)), least_batch, max_batch);
}

int64_t epochs_for(int64_t pairs, int64_t batch) {
  if (pairs == 0) return least_epochs;
  const int64_t steps = (pairs + batch - 1) / batch;
  return std::clamp((wanted_steps + steps - 1) / steps, least_epochs, max_epochs);
}

// A longer warm-up would dominate a short training, and patience begins after it.
constexpr int64_t max_warmup = 200, least_warmup = 10, warmup_share = 10;

int64_t warmup_for(int64_t steps) {
  return steps == 0 ? max_warmup : std::clamp(steps / warmup_share, least_warmup, max_warmup);
}

// Number of steps of a training with `pairs` pairs; 0: unknown.
int64_t steps_of(const TrainConfig& train, int64_t pairs) {
  if (pairs == 0 || train.batch_tokens > 0) return train.steps;
  const int64_t batches = (pairs + train.batch - 1) / train.batch;
  const int64_t steps = (batches + train.accumulate - 1) / train.accumulate * train.epochs;
  return train.steps == 0 ? steps : std::min(train.steps, steps);
}

// If epochs have few steps, five validations cover too little training.
constexpr int64_t least_patience = 5, max_patience = 100, patient_steps = 250;

int64_t patience_for(const TrainConfig& train, int64_t pairs) {
  int64_t steps = train.validate_steps;
  if (steps == 0) {
    if (pairs == 0 || train.batch_tokens > 0) return least_patience;
    const int64_t batches = (pairs + train.batch - 1) / train.batch;
    steps = (batches + train.accumulate - 1) / train.accumulate;
  }
  return std::clamp((patient_steps + steps - 1) / steps, least_patience, max_patience);
}

double dropout_for(int64_t pairs) {
  if (pairs == 0 || pairs >= 60000) return 0.1;
  return pairs < 20000 ? 0.3 : 0.2;
}

}  // namespace

void leave_to_size(RunConfig& config) {
  config.train.batch = config.train.epochs = 0;
  config.train.warmup_steps = config.train.patience = -1;
  if (double* dropout = dropout_of(config)) *dropout = -1;
}

std::string settle_by_size(RunConfig& config, int64_t pairs, int64_t windows) {
  std::vector<std::string> chosen;
  const auto say = [&](const char* key, const auto& value) {
    chosen.push_back(fmt::format("{} = {}", key, value));
  };
  if (config.train.batch == 0 && config.train.batch_tokens > 0) {
    config.train.batch = max_batch;  // unused
  } else if (config.train.batch == 0) {
    config.train.batch = batch_for(pairs);
    say("train.batch", config.train.batch);
  }
  if (config.train.epochs == 0) {
    // Batches by tokens are meant for large data.
    config.train.epochs =
        config.train.batch_tokens > 0 ? least_epochs : epochs_for(pairs, config.train.batch);
    say("train.epochs", config.train.epochs);
  }
  if (config.train.warmup_steps < 0) {
    config.train.warmup_steps = warmup_for(steps_of(config.train, std::max(pairs, windows)));
    if (config.train.warmup_steps < max_warmup)
      say("train.warmup_steps", config.train.warmup_steps);
  }
  if (config.train.patience < 0) {
    config.train.patience = patience_for(config.train, std::max(pairs, windows));
    if (config.train.patience > least_patience) say("train.patience", config.train.patience);
  }
  if (double* dropout = dropout_of(config); dropout != nullptr && *dropout < 0) {
    *dropout = dropout_for(pairs);
    say("model.dropout", *dropout);
  }
  return chosen.empty()
             ? ""
             : fmt::format("chosen by the size of the data: {}", fmt::join(chosen, ", "));
}

void settle_as(RunConfig& config, RunConfig& settled) {
  if (config.train.batch == 0) config.train.batch = settled.train.batch;
  if (config.train.epochs == 0) config.train.epochs = settled.train.epochs;
  if (config.train.warmup_steps < 0) config.train.warmup_steps = settled.train.warmup_steps;
  if (config.train.patience < 0) config.train.patience = settled.train.patience;
  double* dropout = dropout_of(config);
  const double* other = dropout_of(settled);
  if (dropout != nullptr && other != nullptr && *dropout < 0) *dropout = *other;
}

}  // namespace attend
