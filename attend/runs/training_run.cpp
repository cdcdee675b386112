#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/models/new_pair_model.h"
#include "attend/nn/devices.h"
#include "attend/runs/history.h"
#include "attend/runs/training_folder-inl.h"
#include "attend/runs/training_run-inl.h"
#include "attend/runs/validator.h"
#include "attend/train/stream_batches.h"
#include "attend/train/trainer.h"
#include "attend/train/window_batches.h"

namespace attend::internal {
namespace {

// `pairs` receives pairs that are held in memory. All arguments must outlive the source.
std::unique_ptr<BatchSource> make_source(const TrainOptions& options, const RunConfig& config,
                                         const PairModel& model, const PairData& data,
                                         std::vector<EncodedPair>& pairs, const Tell& tell) {
  if (!data.text.empty())
    return std::make_unique<WindowBatches>(model.encode_text(data.text),
                                           config.model.chosen().context(), config.train);
  if (data.stream.source.empty()) {
    int64_t cut = 0;
    pairs = model.encode(data.train, &cut);
    if (cut > 0)
      tell(fmt::format(
          "{}: {} sources are cut to their first {} frames (model.maximum_source_length)",
          options.data, cut, config.model.chosen().maximum_source_length()));
    return std::make_unique<PairBatches>(pairs, config.train);
  }
  const int64_t longest = config.model.chosen().maximum_target_length();
  const auto encode = [&options, &config, &model, &data, longest](const Example& example) {
    const TokenisedExamples tokenised =
        tokenise_examples({example}, model.codecs, options.strict ? no_limit : longest);
    check_labels(model, tokenised, data.train_file);
    if (options.strict) check_lengths(config, tokenised, nullptr, options.data);
    return model.encode(tokenised);
  };
  return std::make_unique<StreamBatches>(data.stream, encode, config.train);
}

// Text that must be equal in all processes: program version, settings of training and texts, and
// data.
std::string shared_by_processes(const TrainOptions& options, RunConfig config,
                                const BatchSource& source, const Validator& validator) {
  return fmt::format("attend {}\n{}data {:x}\nvalidation data {:x}\n--init {}, {}\n",
                     ATTEND_VERSION, to_toml(config.settings()), source.fingerprint(),
                     validator.fingerprint(), options.init, name_of(options.init_vocabulary));
}

}  // namespace

std::string event_folder(const TrainOptions& options, const RunConfig& config) {
  const std::string& folder = config.train.tensorboard;
  if (folder == TrainConfig::no_events) return "";
  if (folder.empty()) return options.out;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || ::access(folder.c_str(), W_OK | X_OK) != 0)
    fail("train.tensorboard {}: cannot be written: {}; choose another folder, or none", folder,
         error ? error.message() : std::generic_category().message(errno));
  return folder;
}

Trained run_training(const TrainOptions& options, const RunConfig& config, const PairModel& model,
                     const PairData& data, bool resume, Communicator& world,
                     const TrainWatch& watch) {
  std::vector<std::shared_ptr<PairNetwork>> replicas = {model.network};
  while (static_cast<int64_t>(replicas.size()) < config.train.replicas)
    replicas.push_back(model.make_network());
  const auto averaged = model.make_network();
  const Devices devices = devices_of(options.placement);
  for (const auto& replica : replicas) replica->place(devices);
  averaged->place(devices);
  averaged->eval();
  std::vector<EncodedPair> pairs;
  const auto source = make_source(options, config, model, data, pairs, watch.remark);
  Validator validator(config, model, data, averaged, world);
  check_alike(world, shared_by_processes(options, config, *source, validator), "settings or data");

  if (validator.measured() < validator.available())
    watch.say(fmt::format(
        "validation measures {} of {} {}, spread over all of them (train.validation_examples)",
        validator.measured(), validator.available(),
        data.valid_text.empty() ? "examples" : "windows"));

  TrainTask task;
  task.replicas.assign(replicas.begin(), replicas.end());
  task.averaged = averaged;
  task.source = source.get();
  task.objective = [&](int64_t replica, const Batch& batch, const Pass& pass) {
    return replicas[static_cast<size_t>(replica)]->objective(batch, pass,
                                                             config.train.label_smoothing);
  };
  task.validate = [&] { return validator(); };
  task.validation_fingerprint = validator.fingerprint();
  task.metric = validator.metric().name;
  task.higher_is_better = validator.metric().higher_is_better;
  int64_t steps = 0;
  task.report = [&](const TrainProgress& progress) {
    // Written after the second step, when training has continued with the new settings.
    if (world.leads() && resume && ++steps == 2) write_settings(options, config.train);
    if (watch.progress) watch.progress(progress, validator.metric());
  };
  task.say = watch.say;
  task.stop = watch.stop;
  task.world = &world;
  task.folder = options.out;
  if (world.leads()) task.event_folder = event_folder(options, config);
  const TrainOutcome outcome = train_network(config.train, task, resume);
  if (!world.leads()) return {outcome, validator.metric()};
  if (resume) write_settings(options, config.train);
  if (const auto history = read_history(options.out); !history.empty())
    write_file(options.out + "/curves.svg", history_chart(history));
  return {outcome, validator.metric()};
}

}  // namespace attend::internal
