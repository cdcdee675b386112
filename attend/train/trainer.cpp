#include "attend/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/memory.h"
#include "attend/models/parameters_file.h"
#include "attend/nn/worker_threads.h"
#include "attend/train/checkpoint.h"
#include "attend/train/data_cursor-inl.h"
#include "attend/train/optimiser.h"
#include "attend/train/step_gradient-inl.h"
#include "attend/train/train_limits-inl.h"
#include "attend/train/validation_files-inl.h"

namespace attend {
namespace {

// Number of consecutive steps without a finite gradient after which training returns to a
// checkpoint.
constexpr int64_t max_bad_steps = 10;

class Trainer {
 public:
  Trainer(const TrainConfig& config, const TrainTask& task, Communicator& world)
      : config_(config),
        task_(task),
        world_(world),
        threads_(config.replicas),
        optimiser_(config, task.replicas, task.averaged, world),
        gradients_(config, task, world, optimiser_),
        files_(config, task),
        limits_(config, state_),
        place_(*task.source, config, state_),
        checkpoint_path_(task.folder + "/checkpoint.safetensors"),
        weights_path_(task.folder + "/weights.safetensors") {
    state_.data_fingerprint = task.source->fingerprint();
    describe_run(state_);
    forget_best();
  }

  TrainOutcome run(bool resume) {
    const bool resumed =
        broadcast_number(world_, resume && std::filesystem::exists(checkpoint_path_) ? 1 : 0) > 0;
    start_ = saved_at_ = task_.now();
    if (resumed)
      restore();
    else
      optimiser_.broadcast();
    seconds_before_ = state_.seconds;
    const int64_t steps_before = state_.step;
    forget_later_steps();
    // The process may have been killed between writing the checkpoint and the weights it calls
    // best.
    if (resumed && state_.step > 0 && state_.best_step == state_.step) save_best();
    // Checkpoint for a training that diverges early.
    if (!resumed) save();
    bool interrupted = false;
    if (!limits_.finished()) {
      find_place();
      begin_events();
    }
    while (!limits_.finished() && !interrupted) {
      TrainProgress progress;
      step(progress);
      const bool lost = bad_steps_ == max_bad_steps;
      if (lost) roll_back(progress.trouble);
      describe(progress);
      validation_due_ = !lost && (validation_due_ || limits_.at_validation());
      // A validation due at a skipped step waits. Training may still return to an earlier
      // checkpoint, and the weights of the validation would remain as the best.
      if (validation_due_ && (limits_.out_of_time() || limits_.at_limit() || can_go_on()))
        validate(progress);
      estimate_rest(progress);
      task_.report(progress);
      interrupted = sum(world_, task_.stop && *task_.stop ? 1.0 : 0.0) > 0;
      if (interrupted || limits_.finished() || progress.validation || due()) save();
      // Written after the checkpoint that refers to them; if the process is killed in between, the
      // next run writes them. In the other order, weights without a checkpoint would remain.
      if (progress.best) save_best();
      if (limits_.epoch_begins() && !limits_.finished()) task_.source->begin(state_.epoch);
    }
    if (!interrupted) check_outcome();
    const auto [setting, limit] = interrupted ? std::pair<std::string, double>() : limits_.ending();
    return {interrupted,
            setting,
            limit,
            state_.step,
            steps_before,
            state_.step - state_.updates,
            state_.rollbacks,
            state_.best_metric,
            state_.seconds};
  }

 private:
  double seconds_since(double start) const { return task_.now() - start; }

  // Error if training produced no weights.
  void check_outcome() const {
    const bool has_none = world_.leads() && !std::filesystem::exists(weights_path_);
    if (broadcast_number(world_, has_none ? 1 : 0) == 0) return;
    if (!validated_)
      fail(
          "training ended at step {} without weights to keep: an earlier run was stopped before "
          "its first validation, and no step is left; raise train.epochs ({}) or train.steps ({})",
          state_.step, config_.epochs, config_.steps);
    fail(
        "training ended at step {} without weights to keep: no validation had a finite figure; "
        "lower train.learning_rate ({}), or begin with other weights",
        state_.step, config_.learning_rate);
  }

  bool due() const { return seconds_since(saved_at_) >= config_.checkpoint_seconds; }

  void find_place() {
    place_.find(checkpoint_path_);
    first_progress_ = limits_.progress_made(state_.step, place_.within_epoch());
    started_ = task_.now();
  }

  void begin_events() {
    if (world_.leads()) files_.begin_events(state_.step);
  }

  // Approximate total number of steps, after `step` steps.
  double all_steps(int64_t step) const {
    return static_cast<double>(step) / limits_.progress_made(step, place_.within_epoch());
  }

  void step(TrainProgress& progress) {
    const auto batches = place_.next_batches();
    rate_ = state_.rate_factor * learning_rate_at(config_, state_.step, all_steps(state_.step + 1));
    const auto [objective, norm, tokens] = gradients_.compute(batches, state_.step, threads_);
    progress.step_loss = objective / static_cast<double>(tokens);
    if (std::isfinite(objective) && std::isfinite(norm)) {
      optimiser_.step(threads_, norm, rate_);
      ++state_.updates;
      bad_steps_ = 0;
      state_.loss_sum += objective;
      state_.loss_tokens += static_cast<double>(tokens);
    } else {
      ++bad_steps_;
      progress.trouble = fmt::format("step {} is skipped: {} is not finite", state_.step + 1,
                                     internal::not_finite(*task_.replicas[0]));
    }
    ++state_.step;
    place_.end_step();
    state_.seconds = broadcast_number(world_, seconds_before_ + seconds_since(start_));
  }

  // Training repeats the batches since the checkpoint with smaller steps.
  void roll_back(std::string& trouble) {
    const int64_t step = state_.step, rollbacks = state_.rollbacks + 1;
    const double factor = state_.rate_factor / 2;
    if (rollbacks > config_.rollbacks)
      fail(
          "training diverged at step {}: {} steps in a row had no finite gradient, after {} "
          "returns to a checkpoint ({}); the last good one is in {}; lower train.learning_rate "
          "({})",
          step, max_bad_steps, config_.rollbacks, trouble, checkpoint_path_, config_.learning_rate);
    restore();
    state_.rollbacks = rollbacks;
    state_.rate_factor = factor;
    forget_later_steps();
    state_.seconds = broadcast_number(world_, seconds_before_ + seconds_since(start_));
    bad_steps_ = 0;
    find_place();
    begin_events();
    save();
    trouble += fmt::format("; after {} such steps training returns to step {} at {:g} of the rate",
                           max_bad_steps, state_.step, factor);
  }

  void describe(TrainProgress& progress) const {
    const bool epoch_ended = limits_.epoch_begins() && state_.epoch > 0;
    progress.step = state_.step;
    progress.epoch = state_.epoch + (epoch_ended ? 0 : 1);
    progress.loss = state_.loss_tokens > 0 ? state_.loss_sum / state_.loss_tokens : 0;
    progress.rate = rate_;
    const double elapsed = state_.seconds - seconds_before_;
    progress.pairs_per_second = static_cast<double>(place_.pairs_done()) / std::max(elapsed, 1e-9);
    progress.seconds = state_.seconds;
  }

  // Called after the validation, which may exhaust the time or the patience.
  void estimate_rest(TrainProgress& progress) const {
    const double made = limits_.progress_made(state_.step, place_.within_epoch());
    if (limits_.finished()) {
      progress.steps = state_.step;
      progress.remaining = 0;
    } else if (made > first_progress_) {
      progress.steps = std::llround(all_steps(state_.step));
      progress.remaining = seconds_since(started_) * (1 - made) / (made - first_progress_);
    }
  }

  bool is_better(double metric) const {
    return task_.higher_is_better ? metric > state_.best_metric : metric < state_.best_metric;
  }

  void validate(TrainProgress& progress) {
    if (optimiser_.synchronise())
      add_trouble(progress, fmt::format("step {}: the weights of the processes differ; all "
                                        "continue with the weights of rank 0",
                                        state_.step));
    const Validation own = task_.validate();
    const double loss = broadcast_number(world_, own.loss),
                 metric = broadcast_number(world_, own.metric);
    progress.validation = {loss, metric};
    validation_due_ = false;
    validated_ = true;
    if (!std::isfinite(metric))
      add_trouble(progress,
                  fmt::format("step {}: the validation's {} is {}, so its weights are not kept",
                              state_.step, task_.metric, metric));
    const bool finite = optimiser_.weights_finite() && std::isfinite(metric);
    progress.equals_best = finite && metric == state_.best_metric;
    progress.best =
        finite && (is_better(metric) || (progress.equals_best && loss < state_.best_loss));
    if (progress.best) {
      state_.best_metric = metric;
      state_.best_loss = loss;
      state_.best_step = state_.step;
    }
    if (progress.best) {
      state_.stale_validations = 0;
    } else if (limits_.counts_patience()) {
      ++state_.stale_validations;
      if (config_.schedule == Schedule::plateau &&
          state_.stale_validations % config_.plateau_patience == 0)
        state_.rate_factor *= config_.plateau_factor;
    }
    state_.seconds = progress.seconds =
        broadcast_number(world_, seconds_before_ + seconds_since(start_));
    state_.loss_sum = state_.loss_tokens = 0;
    if (world_.leads()) files_.add(progress, state_);
  }

  static void add_trouble(TrainProgress& progress, const std::string& line) {
    progress.trouble += (progress.trouble.empty() ? "" : "; ") + line;
  }

  void forget_best() {
    const double infinity = std::numeric_limits<double>::infinity();
    state_.best_loss = infinity;
    state_.best_metric = task_.higher_is_better ? -infinity : infinity;
    state_.best_step = state_.stale_validations = 0;
  }

  // A resumed training begins after its checkpoint.
  void forget_later_steps() const {
    if (world_.leads()) files_.forget_after(state_.step);
  }

  void save_best() const {
    if (world_.leads()) save_weights(*task_.averaged, weights_path_);
  }

  bool can_go_on() const { return bad_steps_ == 0 && optimiser_.weights_finite(); }

  // After a failed step, the previous checkpoint is kept.
  void save() {
    saved_at_ = task_.now();
    if (!world_.leads() || !can_go_on()) return;
    optimiser_.save(state_);
    write_checkpoint(checkpoint_path_, state_);
  }

  // Sets the fields that describe this run.
  void describe_run(Checkpoint& state) const {
    state.seed = config_.seed;
    state.shuffle_buffer = config_.shuffle_buffer;
    state.processes = world_.size();
    state.replicas = config_.replicas;
    state.metric = task_.metric;
    state.validation_fingerprint = task_.validation_fingerprint;
  }

  // Only rank 0 needs access to the folder.
  void restore() {
    std::string bytes = world_.leads() ? read_file(checkpoint_path_, memory_limit()) : "";
    Checkpoint stored =
        parse_checkpoint(broadcast_text(world_, std::move(bytes)), checkpoint_path_);
    check_resumable(stored, state_, checkpoint_path_);
    for (const std::string& line : resume_warnings(stored, state_, checkpoint_path_))
      task_.say(line);
    optimiser_.restore(stored, checkpoint_path_);
    const bool comparable = same_metric(stored, state_);
    state_ = std::move(stored);
    describe_run(state_);
    if (!limits_.epoch_begins() && state_.handed_out[0].size == BatchSize{})
      state_.handed_out[0].size = place_.size();
    if (!comparable) forget_best();
  }

  const TrainConfig& config_;
  const TrainTask& task_;
  Communicator& world_;
  Checkpoint state_;
  WorkerThreads threads_;
  Optimiser optimiser_;
  internal::StepGradients gradients_;
  internal::ValidationFiles files_;
  internal::TrainLimits limits_;
  internal::DataCursor place_;
  const std::string checkpoint_path_, weights_path_;
  bool validation_due_ = false;
  bool validated_ = false;     // in this run
  int64_t bad_steps_ = 0;      // consecutive
  double first_progress_ = 0;  // progress at started_
  double rate_ = 0;
  double seconds_before_ = 0;  // time of earlier runs
  double start_ = 0, started_ = 0, saved_at_ = 0;
};

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TrainOutcome train_network(const TrainConfig& config, const TrainTask& task, bool resume) {
  check_values(TrainConfig(config).settings(), "[train]");
  if (static_cast<int64_t>(task.replicas.size()) != config.replicas)
    fail("[train] {} replicas were made, train.replicas is {}", task.replicas.size(),
         config.replicas);
  if (config.epochs < 1)
    fail("[train] train.epochs is 0, which a run sets by the size of its data; set it");
  if (config.batch < 1 && config.batch_tokens < 1)
    fail("[train] train.batch is 0, which a run sets by the size of its data; set it");
  if (config.warmup_steps < 0)
    fail("[train] train.warmup_steps is -1, which a run sets by the size of its data; set it");
  const std::unique_ptr<Communicator> one = single_process();
  return Trainer(config, task, task.world ? *task.world : *one).run(resume);
}

}  // namespace attend
