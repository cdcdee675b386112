#include "attend/train/trainer.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/memory.h"
#include "attend/models/parameters_file.h"
#include "attend/nn/linear.h"
#include "attend/nn/worker_threads.h"
#include "attend/train/checkpoint.h"
#include "attend/train/event_file.h"
#include "attend/train/kept_weights.h"
#include "attend/train/metrics_log.h"
#include "attend/train/optimiser.h"

namespace attend {
namespace {

using at::Tensor;

// Steps in a row without a finite gradient after which going on is no use.
constexpr int64_t most_bad_steps = 10;

int64_t target_tokens(const std::vector<std::vector<EncodedPair>>& batches) {
  int64_t tokens = 0;
  for (const auto& batch : batches)
    for (const EncodedPair& pair : batch) tokens += pair.target_length();
  return tokens;
}

// What is not finite, for whoever looks for the cause.
std::string not_finite(const torch::nn::Module& module) {
  const auto finite = [](const Tensor& tensor) { return tensor.isfinite().all().item<bool>(); };
  const auto parameters = module.named_parameters();
  for (const auto& item : parameters)
    if (!finite(item.value())) return "the weights " + item.key();
  for (const auto& item : parameters)
    if (!finite(item.value().grad())) return "the gradient of " + item.key();
  return "the loss";
}

class Trainer {
 public:
  Trainer(const TrainConfig& config, const TrainTask& task, Communicator& world)
      : config_(config),
        task_(task),
        world_(world),
        source_(*task.source),
        size_(BatchSize::of(config)),
        threads_(config.replicas),
        optimiser_(config, task.replicas, task.averaged, world),
        log_(task.folder + "/metrics.jsonl"),
        kept_(task.folder, config.keep_checkpoints),
        checkpoint_path_(task.folder + "/checkpoint.safetensors"),
        weights_path_(task.folder + "/weights.safetensors") {
    // Where only some of the processors multiply bfloat16 themselves, none does.
    const double brains = sum(world, multiplies_bfloat16() ? 1 : 0);
    brain_products_ = config.precision == "bfloat16" ||
                      (config.precision == "auto" && brains == static_cast<double>(world.size()));
    state_.data_fingerprint = source_.fingerprint();
    describe_run(state_);
    forget_best();
  }

  TrainOutcome run(bool resume) {
    const bool resumed =
        of_first(world_, resume && std::filesystem::exists(checkpoint_path_) ? 1 : 0) > 0;
    start_ = saved_at_ = task_.now();
    if (resumed)
      restore();
    else
      optimiser_.broadcast();
    seconds_before_ = state_.seconds;
    const int64_t steps_before = state_.step;
    forget_later_steps();
    // A kill may have come between a checkpoint and the weights that it says are the best.
    if (resumed && state_.step > 0 && state_.best_step == state_.step) save_best();
    // What a training that diverges early goes back to.
    if (!resumed) save();
    bool interrupted = false;
    if (!finished()) {
      find_place();
      begin_events();
    }
    while (!finished() && !interrupted) {
      TrainProgress progress;
      step(progress);
      const bool lost = bad_steps_ == most_bad_steps;
      if (lost) roll_back(progress.trouble);
      describe(progress);
      validation_due_ = !lost && (validation_due_ || at_validation());
      // A validation that falls on a skipped step waits: training may still return to a checkpoint
      // before it, and the weights that it found best would stay.
      if (validation_due_ && (out_of_time() || at_limit() || can_go_on())) validate(progress);
      estimate_rest(progress);
      task_.report(progress);
      interrupted = sum(world_, task_.stop && *task_.stop ? 1.0 : 0.0) > 0;
      if (interrupted || finished() || progress.validation || due()) save();
      // After the checkpoint that says so: the next run makes up for a kill in between. In the
      // other order, a kill would leave weights that no checkpoint knows.
      if (progress.best) save_best();
      if (epoch_begins() && !finished()) source_.begin(state_.epoch);
    }
    if (!interrupted) check_outcome();
    const auto [setting, limit] = interrupted ? Ending() : ending();
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

  bool out_of_time() const { return config_.minutes > 0 && state_.seconds >= 60 * config_.minutes; }
  bool out_of_patience() const {
    return config_.patience > 0 && state_.stale_validations >= config_.patience;
  }
  bool at_limit() const {
    return state_.epoch >= config_.epochs || (config_.steps > 0 && state_.step >= config_.steps);
  }
  bool epoch_begins() const { return state_.handed_out.empty(); }
  bool at_validation() const {
    if (out_of_time() || at_limit()) return true;
    return config_.validate_steps > 0 ? state_.step % config_.validate_steps == 0 : epoch_begins();
  }
  bool finished() const { return at_limit() || out_of_patience() || out_of_time(); }

  // The setting that ends the training, and its value.
  using Ending = std::pair<std::string, double>;
  Ending ending() const {
    if (out_of_patience()) return {"train.patience", static_cast<double>(config_.patience)};
    if (state_.epoch >= config_.epochs)
      return {"train.epochs", static_cast<double>(config_.epochs)};
    if (at_limit()) return {"train.steps", static_cast<double>(config_.steps)};
    return {"train.minutes", config_.minutes};
  }

  // What trains must leave something that answers.
  void check_outcome() const {
    const bool has_none = world_.leads() && !std::filesystem::exists(weights_path_);
    if (of_first(world_, has_none ? 1 : 0) > 0)
      fail(
          "training ended at step {} without weights to keep: no validation had a finite figure; "
          "lower train.learning_rate ({}), or begin with other weights",
          state_.step, config_.learning_rate);
  }
  bool due() const { return seconds_since(saved_at_) >= config_.checkpoint_seconds; }

  // Goes to the place in the data that the state tells, by batches of the sizes that they had.
  void find_place() {
    if (!epoch_begins()) source_.regroup(state_.handed_out[0].size);
    source_.begin(state_.epoch);
    for (const BatchRun& run : state_.handed_out) {
      source_.regroup(run.size);
      for (int64_t i = 0; i < run.batches; ++i) {
        if (source_.done() >= 1)
          fail(
              "{}: was taken after {} batches of epoch {}, which has fewer; "
              "give the train.batch and train.batch_tokens that it was taken with",
              checkpoint_path_, run.batches, state_.epoch + 1);
        source_.next();
      }
    }
    source_.regroup(size_);
    first_progress_ = progress_made(state_.step);
    started_ = task_.now();
  }

  void begin_events() {
    if (world_.leads() && !task_.event_folder.empty())
      events_.emplace(task_.event_folder, state_.step);
  }

  // The share of the epochs whose batches were handed out.
  double epochs_done() const {
    const double within = epoch_begins() ? 0 : source_.done();
    return (static_cast<double>(state_.epoch) + within) / static_cast<double>(config_.epochs);
  }

  // The share of the training that `step` steps are, by whichever limit comes first.
  double progress_made(int64_t step) const {
    double made = epochs_done();
    if (config_.steps > 0)
      made = std::max(made, static_cast<double>(step) / static_cast<double>(config_.steps));
    if (config_.minutes > 0) made = std::max(made, state_.seconds / (60 * config_.minutes));
    return std::min(made, 1.0);
  }

  // About how many steps there will be, after `step` of them.
  double all_steps(int64_t step) const { return static_cast<double>(step) / progress_made(step); }

  std::vector<std::vector<EncodedPair>> next_batches() {
    std::vector<std::vector<EncodedPair>> batches;
    batches.reserve(static_cast<size_t>(config_.accumulate));
    while (static_cast<int64_t>(batches.size()) < config_.accumulate &&
           (batches.empty() || source_.done() < 1)) {
      batches.push_back(source_.next());
      pairs_done_ += static_cast<int64_t>(batches.back().size());
      auto& runs = state_.handed_out;
      if (runs.empty() || runs.back().size != size_) runs.push_back({size_, 0});
      ++runs.back().batches;
    }
    return batches;
  }

  void step(TrainProgress& progress) {
    const auto batches = next_batches();
    const int64_t tokens = target_tokens(batches);
    rate_ = state_.rate_factor * learning_rate_at(config_, state_.step, all_steps(state_.step + 1));
    std::vector<double> objectives(static_cast<size_t>(config_.replicas));
    threads_.run(config_.replicas, [&](int64_t replica) {
      objectives[static_cast<size_t>(replica)] = work(batches, replica, tokens);
    });
    const double own_norm = optimiser_.sum_gradients(threads_);
    // The norm of the first, for unlike processors add up in other orders.
    const std::vector<double> sums =
        sum(world_, std::vector{std::reduce(objectives.begin(), objectives.end()),
                                world_.leads() ? own_norm : 0});
    const double objective = sums[0], norm = sums[1];
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
                                     not_finite(*task_.replicas[0]));
    }
    ++state_.step;
    if (source_.done() >= 1) {
      ++state_.epoch;
      state_.handed_out.clear();
    }
    state_.seconds = of_first(world_, seconds_before_ + seconds_since(start_));
  }

  // The share of a replica: of all replicas of all processes each takes every so many-th pair, so
  // that all have the same mix of lengths; all pairs, where processes share sequences.
  double work(const std::vector<std::vector<EncodedPair>>& batches, int64_t replica,
              int64_t tokens) {
    optimiser_.clear_gradient(replica);
    const bool by_pairs = !config_.sequence_parallel;
    const int64_t first = by_pairs ? world_.rank() * config_.replicas + replica : 0;
    const int64_t all = by_pairs ? world_.size() * config_.replicas : 1;
    const Pass pass{.generator = at::make_generator<at::CPUGeneratorImpl>(
                        noise_seed(config_.seed, state_.step, first)),
                    .bfloat16 = brain_products_,
                    .world = by_pairs ? nullptr : &world_};
    const auto last = std::find_if(batches.rbegin(), batches.rend(),
                                   [&](const auto& batch) { return std::ssize(batch) > first; });
    double sum = 0;
    for (const auto& batch : batches) {
      std::vector<int64_t> share;
      share.reserve(batch.size());
      for (auto i = first; i < static_cast<int64_t>(batch.size()); i += all) share.push_back(i);
      if (share.empty()) continue;
      const Tensor objective = task_.objective(replica, make_batch(batch, share), pass);
      if (&batch == &*last) optimiser_.begin_last_backward(replica);
      (objective / static_cast<double>(tokens)).backward();
      sum += objective.item<double>();
    }
    return sum;
  }

  // The batches are met again, with smaller steps.
  void roll_back(std::string& trouble) {
    const int64_t step = state_.step, rollbacks = state_.rollbacks + 1;
    const double factor = state_.rate_factor / 2;
    if (rollbacks > config_.rollbacks)
      fail(
          "training diverged at step {}: {} steps in a row had nothing finite to learn from, after "
          "{} returns to a checkpoint ({}); the last good one is in {}; lower "
          "train.learning_rate ({})",
          step, most_bad_steps, config_.rollbacks, trouble, checkpoint_path_,
          config_.learning_rate);
    restore();
    state_.rollbacks = rollbacks;
    state_.rate_factor = factor;
    forget_later_steps();
    state_.seconds = of_first(world_, seconds_before_ + seconds_since(start_));
    bad_steps_ = 0;
    find_place();
    begin_events();
    save();
    trouble += fmt::format("; after {} such steps training returns to step {} at {:g} of the rate",
                           most_bad_steps, state_.step, factor);
  }

  void describe(TrainProgress& progress) const {
    const bool epoch_ended = epoch_begins() && state_.epoch > 0;
    progress.step = state_.step;
    progress.epoch = state_.epoch + (epoch_ended ? 0 : 1);
    progress.loss = state_.loss_tokens > 0 ? state_.loss_sum / state_.loss_tokens : 0;
    progress.rate = rate_;
    const double elapsed = state_.seconds - seconds_before_;
    progress.pairs_per_second = static_cast<double>(pairs_done_) / std::max(elapsed, 1e-9);
    progress.seconds = state_.seconds;
  }

  // After the validation, whose time may be the last and whose metric may end the patience.
  void estimate_rest(TrainProgress& progress) const {
    const double made = progress_made(state_.step);
    if (finished()) {
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
    if (optimiser_.bring_together())
      add_trouble(progress, fmt::format("step {}: the weights of the processes differ, and are "
                                        "those of rank 0 from here on",
                                        state_.step));
    const Validation own = task_.validate();
    const double loss = of_first(world_, own.loss), metric = of_first(world_, own.metric);
    progress.validation = {loss, metric};
    validation_due_ = false;
    if (!std::isfinite(metric))
      add_trouble(progress, fmt::format("step {}: the validation's {} is {}, so that its weights "
                                        "are not kept",
                                        state_.step, task_.metric, metric));
    const bool finite = optimiser_.weights_finite() && std::isfinite(metric);
    const bool better = finite && is_better(metric);
    progress.equals_best = finite && metric == state_.best_metric;
    progress.best = better || (progress.equals_best && loss < state_.best_loss);
    if (progress.best) {
      state_.best_metric = metric;
      state_.best_loss = loss;
      state_.best_step = state_.step;
    }
    if (better) {
      state_.stale_validations = 0;
    } else {
      ++state_.stale_validations;
      if (config_.schedule == "plateau" && state_.stale_validations % config_.plateau_patience == 0)
        state_.rate_factor *= config_.plateau_factor;
    }
    state_.seconds = progress.seconds = of_first(world_, seconds_before_ + seconds_since(start_));
    state_.loss_sum = state_.loss_tokens = 0;
    if (!world_.leads()) return;
    kept_.add(*task_.averaged, state_.step);
    log_.append(nlohmann::json{{"step", progress.step},
                               {"epoch", progress.epoch},
                               {"train_loss", progress.loss},
                               {"valid_loss", progress.validation->loss},
                               {"metric", task_.metric},
                               {"valid_metric", progress.validation->metric},
                               {"best", progress.best},
                               {"learning_rate", progress.rate},
                               {"skipped_steps", state_.step - state_.updates},
                               {"rollbacks", state_.rollbacks},
                               {"pairs_per_second", progress.pairs_per_second},
                               {"seconds", progress.seconds}}
                    .dump());
    write_events(progress);
  }

  void write_events(const TrainProgress& progress) {
    if (!events_) return;
    events_->write(progress.step, {{"loss/training", progress.loss},
                                   {"loss/validation", progress.validation->loss},
                                   {"validation/" + task_.metric, progress.validation->metric},
                                   {"training/learning_rate", progress.rate},
                                   {"training/pairs_per_second", progress.pairs_per_second}});
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

  // A training that goes on from an earlier one begins behind its checkpoint.
  void forget_later_steps() const {
    if (!world_.leads()) return;
    log_.truncate_after(state_.step);
    kept_.drop_after(state_.step);
  }

  void save_best() const {
    if (world_.leads()) save_weights(*task_.averaged, weights_path_);
  }

  bool can_go_on() const { return bad_steps_ == 0 && optimiser_.weights_finite(); }

  // The checkpoint before a step that failed stays.
  void save() {
    saved_at_ = task_.now();
    if (!world_.leads() || !can_go_on()) return;
    optimiser_.save(state_);
    write_checkpoint(checkpoint_path_, state_);
  }

  // What a checkpoint says of the run that took it.
  void describe_run(Checkpoint& state) const {
    state.seed = config_.seed;
    state.shuffle_buffer = config_.shuffle_buffer;
    state.processes = world_.size();
    state.replicas = config_.replicas;
    state.metric = task_.metric;
    state.validation_fingerprint = task_.validation_fingerprint;
  }

  // The first process alone needs the folder.
  void restore() {
    std::string bytes = world_.leads() ? read_file(checkpoint_path_, memory_limit()) : "";
    Checkpoint stored = parse_checkpoint(of_first(world_, std::move(bytes)), checkpoint_path_);
    check_goes_on(stored, state_, checkpoint_path_);
    for (const std::string& line : told_differences(stored, state_, checkpoint_path_))
      task_.say(line);
    optimiser_.restore(stored, checkpoint_path_);
    const bool comparable = compares(stored, state_);
    state_ = std::move(stored);
    describe_run(state_);
    if (!epoch_begins() && state_.handed_out[0].size == BatchSize{})
      state_.handed_out[0].size = size_;
    if (!comparable) forget_best();
  }

  const TrainConfig& config_;
  const TrainTask& task_;
  Communicator& world_;
  BatchSource& source_;
  const BatchSize size_;
  WorkerThreads threads_;
  Optimiser optimiser_;
  MetricsLog log_;
  KeptWeights kept_;
  std::optional<EventFile> events_;
  const std::string checkpoint_path_, weights_path_;
  bool brain_products_ = false;
  Checkpoint state_;
  bool validation_due_ = false;
  int64_t bad_steps_ = 0;      // in a row
  int64_t pairs_done_ = 0;     // in this run
  double first_progress_ = 0;  // where started_ began
  double rate_ = 0;
  double seconds_before_ = 0;  // spent by the runs before
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
  const std::unique_ptr<Communicator> one = alone();
  return Trainer(config, task, task.world ? *task.world : *one).run(resume);
}

}  // namespace attend
