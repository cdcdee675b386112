#include "attend/runs/training.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/tables.h"
#include "attend/models/model_size.h"
#include "attend/ops/blas.h"
#include "attend/parallel/communicator.h"
#include "attend/runs/history.h"
#include "attend/runs/initial_model.h"
#include "attend/runs/out_folder.h"
#include "attend/runs/run_config.h"
#include "attend/runs/size_defaults.h"
#include "attend/runs/train_data.h"
#include "attend/runs/validator.h"
#include "attend/train/stream_batches.h"
#include "attend/train/trainer.h"
#include "attend/train/window_batches.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

// Whether a start was killed before its first checkpoint. It leaves training.toml, which is written
// first, and all or some of the description: nothing that the command would not make again. What
// --init names is not in it, so that training cannot go on from there.
bool is_unfinished_start(const std::set<std::string>& names) {
  static const std::set<std::string> first = {"training.toml", "source.vocab", "target.vocab",
                                              "bpe.codes",     "source.bpe",   "target.bpe",
                                              "config.toml"};
  return names.contains("training.toml") &&
         std::includes(first.begin(), first.end(), names.begin(), names.end());
}

// Whether there is a model to train further. Error when the folder holds something else.
bool holds_model(const std::string& path) {
  const std::set<std::string> names = names_in(path);
  if (names.empty() || is_unfinished_start(names)) return false;
  if (!names.contains("config.toml"))
    fail("--out {}: holds other files and no model; choose a new folder", path);
  return true;
}

// The folder that a model is trained in, by this process alone.
class ModelFolder {
 public:
  explicit ModelFolder(std::string path) : path_(std::move(path)) {
    if (fs::exists(path_)) lock_.emplace(take_out_folder(path_));
  }

  bool holds_model() const { return lock_ && attend::holds_model(path_); }

  // Error when it cannot be created, or when another process has begun a model there since.
  void create() {
    if (lock_) return;
    lock_.emplace(take_out_folder(path_));
    if (!names_in(path_).empty())
      fail("--out {}: another process has begun a model there; choose another folder", path_);
  }

 private:
  const std::string path_;
  std::optional<FolderLock> lock_;
};

void write_settings(const TrainOptions& options, TrainConfig config) {
  write_file(options.out + "/training.toml", to_toml(config.settings(), /*with_help=*/true));
}

PairModel new_model(const RunConfig& config, const PairData& data) {
  if (data.stream.source.empty() && data.text.empty())
    return make_pair_model(config.text, config.model, data.train);
  const TextCodecs codecs = make_codecs(config.text);
  TokenCounts counts;
  if (!data.text.empty()) {
    counts.add_text(data.text, codecs.target);
    return make_pair_model(config.text, config.model, counts);
  }
  ExampleStream in_order({data.stream}, 1, 0, 0);
  for (Example example; in_order.next(example);) counts.add(example, codecs);
  return make_pair_model(config.text, config.model, counts);
}

// `folder` is null where another process writes.
PairModel begin_model(const TrainOptions& options, const RunConfig& config, const PairData& data,
                      const std::optional<InitialModel>& initial, ModelFolder* folder,
                      const Say& say) {
  PairModel model = new_model(config, data);
  if (initial) begin_from(*initial, options, model, say);
  check_memory(model, config.train.replicas);
  check_labels(model, data.train, options.data);
  check_labels(model, data.valid, options.valid.empty() ? options.data : options.valid);
  model.network->place(parse_devices(options.device, options.place));
  if (!folder) return model;
  folder->create();
  write_settings(options, config.train);
  save_description(model, options.out);
  return model;
}

// Empty: none are written. Error, before anything is, where they cannot be.
std::string event_folder(const TrainOptions& options, const RunConfig& config) {
  const std::string& folder = config.train.tensorboard;
  if (folder == "none") return "";
  if (folder.empty()) return options.out;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || ::access(folder.c_str(), W_OK | X_OK) != 0)
    fail("train.tensorboard {}: cannot be written: {}; choose another folder, or none", folder,
         error ? error.message() : std::generic_category().message(errno));
  return folder;
}

// `pairs` takes those that are held in memory; all that is given must outlive the source.
std::unique_ptr<BatchSource> make_source(const TrainOptions& options, const RunConfig& config,
                                         const PairModel& model, const PairData& data,
                                         std::vector<EncodedPair>& pairs, const Say& say) {
  if (!data.text.empty())
    return std::make_unique<WindowBatches>(model.encode_text(data.text),
                                           config.model.chosen().context(), config.train);
  if (data.stream.source.empty()) {
    int64_t cut = 0;
    pairs = model.encode(data.train, &cut);
    if (cut > 0)
      say(fmt::format(
          "attend: {}: {} sounds are cut to their first {} frames (model.maximum_source_length)",
          options.data, cut, config.model.chosen().maximum_source_length()));
    return std::make_unique<PairBatches>(pairs, config.train);
  }
  const int64_t longest = config.model.chosen().maximum_target_length();
  const auto encode = [&options, &config, &model, longest](const Example& example) {
    const TokenisedExamples tokenised = tokenise_examples(
        {example}, model.codecs, /*sources_are_files=*/false, options.strict ? no_limit : longest);
    check_labels(model, tokenised, options.data);
    if (options.strict) check_lengths(config, tokenised, options.data);
    return model.encode(tokenised);
  };
  return std::make_unique<StreamBatches>(data.stream, encode, config.train);
}

// What all processes must have alike: the program, the settings of the training and of the texts,
// and the data.
std::string shared_by_processes(const TrainOptions& options, RunConfig config,
                                const BatchSource& source, const Validator& validator) {
  return fmt::format("attend {}\n{}data {:x}\nvalidation data {:x}\n--init {}, {}\n",
                     ATTEND_VERSION, to_toml(config.settings()), source.fingerprint(),
                     validator.fingerprint(), options.init, options.init_vocabulary);
}

Trained run_training(const TrainOptions& options, const RunConfig& config, const PairModel& model,
                     const PairData& data, bool resume, Communicator& world,
                     const TrainWatch& watch) {
  std::vector<std::shared_ptr<PairNetwork>> replicas = {model.network};
  while (static_cast<int64_t>(replicas.size()) < config.train.replicas)
    replicas.push_back(model.make_network());
  const auto averaged = model.make_network();
  const Devices devices = parse_devices(options.device, options.place);
  for (const auto& replica : replicas) replica->place(devices);
  averaged->place(devices);
  averaged->eval();
  std::vector<EncodedPair> pairs;
  const auto source = make_source(options, config, model, data, pairs, watch.say);
  Validator validator(config, model, data, averaged, world);
  check_alike(world, shared_by_processes(options, config, *source, validator), "settings or data");

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
    // The settings are those of the folder once training has gone on with them.
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

void check_resume(const TrainOptions& options, bool holds_model, const Say& say) {
  if (holds_model && !options.resume)
    fail(
        "--out {}: holds a model already; add --resume to train it further, or choose a new folder",
        options.out);
  if (holds_model && !fs::exists(options.out + "/checkpoint.safetensors"))
    fail(
        "--resume: {0} holds a model without checkpoint.safetensors to go on from; begin another "
        "with its weights: --init {0}",
        options.out);
  if (options.resume && !holds_model && fs::exists(options.out) && !names_in(options.out).empty())
    say(fmt::format("{} was left before its first checkpoint; training begins as this command says",
                    options.out));
}

// Where another process goes on in the folder.
void check_shared_folder(const TrainOptions& options, const Communicator& world) {
  if (!fs::exists(options.out + "/config.toml"))
    fail(
        "--out {}: rank {} finds no config.toml there, where rank 0 goes on; all processes must "
        "share the folder, or have a copy of it",
        options.out, world.rank());
}

void check_sharing(const TrainOptions& options, const RunConfig& config) {
  if (!config.train.sequence_parallel) return;
  if (const std::string why = config.model.chosen().why_not_shared(); !why.empty())
    fail("train.sequence_parallel: {}", why);
  if (config.text.reads_frames())
    fail("train.sequence_parallel: takes sources of tokens, not images or sounds");
  if (config.train.replicas != 1)
    fail(
        "train.sequence_parallel: takes one replica a process, and train.replicas is {}; add --set "
        "train.replicas=1",
        config.train.replicas);
  if (options.device != "cpu" || !options.place.empty())
    fail("train.sequence_parallel: takes the CPU; leave out --device and --place");
}

void check_choice_of_vocabulary(const TrainOptions& options) {
  if (options.init_vocabulary != "extend" && options.init_vocabulary != "keep")
    fail("--init-vocabulary is {}; it must be extend or keep", in_quotes(options.init_vocabulary));
}

void check_work_for_all(const TrainOptions& options, const RunConfig& config, const PairData& data,
                        const Communicator& world) {
  if (config.train.sequence_parallel) return;
  const auto examples = std::ssize(data.train.examples);
  if (examples > 0 && examples < world.size())
    fail("{}: holds {} examples, fewer than the {} processes; start at most {}", options.data,
         examples, world.size(), examples);
}

std::string description(const PairData& data, const PairModel& model) {
  if (!data.text.empty())
    return fmt::format("a text of {} bytes, one of {} to validate on; {} tokens", data.text.size(),
                       data.valid_text.size(), model.target_vocabulary.size());
  const auto counted = [&](const TokenisedExamples& part) {
    const auto [examples, sources, references] = count_examples(part.examples);
    return model.text.merges_references()
               ? fmt::format("{} ({} lines, those of one source together)", examples, references)
               : fmt::format("{}", examples);
  };
  return fmt::format("{} training and {} validation examples; {} source and {} target tokens",
                     data.stream.source.empty() ? counted(data.train) : "streamed",
                     counted(data.valid), model.source_vocabulary.size(),
                     model.target_vocabulary.size());
}

}  // namespace

std::string training_config(const TrainOptions& options) {
  const bool resumes = options.resume && fs::is_directory(options.out) && holds_model(options.out);
  RunConfig config = resumes ? stored_config(options) : new_config(options);
  if (!resumes && !options.init.empty()) load_initial_model(options.init, config);
  return to_toml(config.settings(), /*with_help=*/true);
}

std::vector<Example> read_test(const TrainOptions& options, const std::string& path,
                               const Tell& tell) {
  return read_examples({path}, new_config(options).text, tell);
}

Trained train_model(const TrainOptions& options, const TrainWatch& given) {
  if (options.data.empty())
    fail(
        "--data is missing: a folder with train.tsv and valid.tsv, a TSV file, or of a language "
        "model a text");
  if (options.out.empty()) fail("--out is missing: the folder to write the model to");
  const std::unique_ptr<Communicator> one = alone();
  Communicator& world = options.world ? *options.world : *one;
  // The first process alone looks at the folder, which it will soon write into.
  std::optional<ModelFolder> folder;
  if (world.leads()) folder.emplace(options.out);
  const bool resume = of_first(world, folder && folder->holds_model() ? 1 : 0) > 0;
  TrainWatch watch = given;
  if (!world.leads()) watch = {.begin = given.begin, .stop = given.stop};
  if (folder) check_resume(options, resume, watch.say);
  if (resume) check_shared_folder(options, world);
  RunConfig config = resume ? stored_config(options) : new_config(options);
  check_choice_of_vocabulary(options);
  check_sharing(options, config);
  if (folder) event_folder(options, config);
  std::optional<InitialModel> initial;
  if (!resume && !options.init.empty()) initial = load_initial_model(options.init, config);
  const PairData data = read_training_data(options, config, watch.say);
  check_work_for_all(options, config, data, world);
  const std::string settled = settle_by_size(config, std::ssize(data.train.examples));
  if (watch.begin) watch.begin();
  torch::manual_seed(static_cast<uint64_t>(config.train.seed));
  const PairModel model =
      resume ? load_description(options.out)
             : begin_model(options, config, data, initial, folder ? &*folder : nullptr, watch.say);
  if (resume) check_memory(model, config.train.replicas);
  if (const std::string slow = slow_products(loaded_blas(), measure_products()); !slow.empty())
    watch.say("warning: " + slow);
  watch.say(description(data, model));
  if (!settled.empty()) watch.say(settled);
  Trained trained = run_training(options, config, model, data, resume, world, watch);
  trained.outcome.left_out = data.left_out;
  return trained;
}

}  // namespace attend
