#include "attend/train/trainer.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/models/weights.h"
#include "attend/train/checkpoint.h"
#include "attend/train/metrics_log.h"
#include "attend/train/optimiser.h"
#include "attend/train/replica_threads.h"

namespace attend {
namespace {

using at::Tensor;

// Steps in a row without a finite gradient after which training is lost.
constexpr int64_t most_bad_steps = 20;

// FNV-1a over all ids and lengths (of frames their number): other data would make the cursor of a checkpoint meaningless.
uint64_t fingerprint(const std::vector<EncodedPair>& pairs) {
  uint64_t hash = 14695981039346656037ULL;
  const auto mix = [&](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211ULL;
  };
  for (const EncodedPair& pair : pairs) {
    for (const auto* side : {&pair.source, &pair.target}) {
      mix(static_cast<int64_t>(side->size()));
      for (const int64_t id : *side) mix(id);
    }
    if (pair.frames.defined()) mix(pair.frames.size(0));
  }
  return hash;
}

// LibTorch's Mersenne twister reads 32 bits of its seed, so seed, step and replica are hashed into
// those (the finaliser of SplitMix64).
uint64_t noise_seed(int64_t seed, int64_t step, int64_t replica) {
  uint64_t x = static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15ULL +
               static_cast<uint64_t>(step) * 256 + static_cast<uint64_t>(replica);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return (x ^ (x >> 31)) >> 32;
}

class Trainer {
 public:
  Trainer(const TrainConfig& config, const TrainTask& task)
      : config_(config),
        task_(task),
        threads_(config.replicas),
        optimiser_(config, task.replicas, task.averaged),
        log_(task.folder + "/metrics.jsonl"),
        checkpoint_path_(task.folder + "/checkpoint.safetensors"),
        epoch_steps_((static_cast<int64_t>(task.pairs->size()) + config.batch - 1) / config.batch),
        steps_(epoch_steps_ * config.epochs) {
    state_.data_fingerprint = fingerprint(*task.pairs);
  }

  TrainOutcome run(bool resume) {
    if (resume && std::filesystem::exists(checkpoint_path_)) restore();
    log_.truncate_after(state_.step);
    start_ = saved_at_ = Clock::now();
    seconds_before_ = state_.seconds;
    const int64_t first_step = state_.step;
    bool interrupted = false;
    while (!finished()) {
      const int64_t epoch = state_.step / epoch_steps_;
      if (epoch != epoch_ || batches_.empty()) load_epoch(epoch);
      step(batches_[static_cast<size_t>(state_.step % epoch_steps_)]);
      const bool last = out_of_time() || state_.step == steps_;
      TrainProgress progress = describe(first_step);
      if (last || state_.step % epoch_steps_ == 0) validate(progress);
      task_.report(progress);
      interrupted = task_.stop && *task_.stop;
      if (interrupted || last || progress.validation || due()) save();
      if (interrupted || last) break;
    }
    return {interrupted, state_.step, state_.best_metric, state_.seconds};
  }

 private:
  using Clock = std::chrono::steady_clock;

  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  bool out_of_time() const { return config_.minutes > 0 && state_.seconds >= 60 * config_.minutes; }
  bool out_of_patience() const {
    return config_.patience > 0 && state_.stale_validations >= config_.patience;
  }
  bool finished() const { return state_.step >= steps_ || out_of_patience() || out_of_time(); }
  bool due() const { return seconds_since(saved_at_) >= config_.checkpoint_seconds; }

  void load_epoch(int64_t epoch) {
    epoch_ = epoch;
    batches_ =
        batches_by_length(*task_.pairs, config_.batch, static_cast<uint64_t>(config_.seed), epoch);
  }

  void step(const std::vector<int64_t>& batch) {
    int64_t symbols = 0;
    for (const int64_t index : batch)
      symbols += static_cast<int64_t>((*task_.pairs)[static_cast<size_t>(index)].target.size()) + 1;
    std::vector<double> objectives(static_cast<size_t>(config_.replicas));
    threads_.run([&](int64_t replica) {
      objectives[static_cast<size_t>(replica)] = work(batch, replica, symbols);
    });
    rate_ = learning_rate_at(config_, state_.step, steps_);
    if (optimiser_.update(threads_, rate_)) {
      bad_steps_ = 0;
      for (const double objective : objectives) state_.loss_sum += objective;
      state_.loss_symbols += static_cast<double>(symbols);
    } else if (++bad_steps_ == most_bad_steps) {
      fail(
          "training diverged at step {}: {} gradients in a row were not finite; lower "
          "train.learning_rate ({})",
          state_.step + 1, bad_steps_, config_.learning_rate);
    }
    ++state_.step;
    pairs_done_ += static_cast<int64_t>(batch.size());
    state_.seconds = seconds_before_ + seconds_since(start_);
  }

  // The share of a replica: every replicas-th pair, so that all have the same mix of lengths.
  double work(const std::vector<int64_t>& batch, int64_t replica, int64_t symbols) {
    optimiser_.clear_gradient(replica);
    std::vector<int64_t> share;
    for (auto i = static_cast<size_t>(replica); i < batch.size();
         i += static_cast<size_t>(config_.replicas))
      share.push_back(batch[i]);
    if (share.empty()) return 0;
    const Noise noise =
        at::make_generator<at::CPUGeneratorImpl>(noise_seed(config_.seed, state_.step, replica));
    const Tensor objective = task_.objective(replica, make_batch(*task_.pairs, share), noise);
    (objective / static_cast<double>(symbols)).backward();
    return objective.item<double>();
  }

  TrainProgress describe(int64_t first_step) const {
    TrainProgress progress;
    progress.step = state_.step;
    progress.steps = steps_;
    progress.epoch = (state_.step - 1) / epoch_steps_ + 1;
    progress.loss = state_.loss_symbols > 0 ? state_.loss_sum / state_.loss_symbols : 0;
    progress.rate = rate_;
    const double elapsed = state_.seconds - seconds_before_;
    progress.pairs_per_second = static_cast<double>(pairs_done_) / std::max(elapsed, 1e-9);
    progress.seconds = state_.seconds;
    progress.remaining = elapsed / static_cast<double>(state_.step - first_step) *
                         static_cast<double>(steps_ - state_.step);
    if (config_.minutes > 0)
      progress.remaining =
          std::clamp(60 * config_.minutes - state_.seconds, 0.0, progress.remaining);
    return progress;
  }

  void validate(TrainProgress& progress) {
    progress.validation = task_.validate();
    progress.best = progress.validation->metric < state_.best_metric;
    if (progress.best) {
      state_.best_metric = progress.validation->metric;
      state_.best_step = state_.step;
      state_.stale_validations = 0;
      save_weights(*task_.averaged, task_.folder + "/weights.safetensors");
    } else {
      ++state_.stale_validations;
    }
    state_.seconds = progress.seconds = seconds_before_ + seconds_since(start_);
    state_.loss_sum = state_.loss_symbols = 0;
    log_.append(nlohmann::json{{"step", progress.step},
                               {"epoch", progress.epoch},
                               {"train_loss", progress.loss},
                               {"valid_loss", progress.validation->loss},
                               {"valid_metric", progress.validation->metric},
                               {"best", progress.best},
                               {"learning_rate", progress.rate},
                               {"pairs_per_second", progress.pairs_per_second},
                               {"seconds", progress.seconds}}
                    .dump());
  }

  void save() {
    optimiser_.save(state_);
    write_checkpoint(checkpoint_path_, state_);
    saved_at_ = Clock::now();
  }

  void restore() {
    Checkpoint stored = read_checkpoint(checkpoint_path_);
    if (stored.data_fingerprint != state_.data_fingerprint)
      fail("{}: was trained on other data; give the same --data, or train into a new folder",
           checkpoint_path_);
    optimiser_.restore(stored, checkpoint_path_);
    state_ = std::move(stored);
  }

  const TrainConfig& config_;
  const TrainTask& task_;
  ReplicaThreads threads_;
  Optimiser optimiser_;
  MetricsLog log_;
  const std::string checkpoint_path_;
  const int64_t epoch_steps_;
  const int64_t steps_;
  Checkpoint state_;
  std::vector<std::vector<int64_t>> batches_;
  int64_t epoch_ = -1;
  int64_t bad_steps_ = 0;
  int64_t pairs_done_ = 0;  // in this run
  double rate_ = 0;
  double seconds_before_ = 0;  // spent by the runs before
  Clock::time_point start_, saved_at_;
};

}  // namespace

TrainOutcome train(const TrainConfig& config, const TrainTask& task, bool resume) {
  if (static_cast<int64_t>(task.replicas.size()) != config.replicas)
    fail("[train] {} replicas were made, train.replicas is {}", task.replicas.size(),
         config.replicas);
  if (task.pairs->empty()) fail("[train] there are no training pairs");
  return Trainer(config, task).run(resume);
}

}  // namespace attend
