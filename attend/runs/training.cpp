#include "attend/runs/training.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed.h"
#include "attend/data/node_graph.h"
#include "attend/data/tables.h"
#include "attend/machine/blas.h"
#include "attend/models/model_folder.h"
#include "attend/models/model_size.h"
#include "attend/models/new_pair_model.h"
#include "attend/parallel/communicator.h"
#include "attend/runs/begin_model-inl.h"
#include "attend/runs/initial_model.h"
#include "attend/runs/run_config.h"
#include "attend/runs/size_defaults.h"
#include "attend/runs/train_data.h"
#include "attend/runs/training_checks-inl.h"
#include "attend/runs/training_folder-inl.h"
#include "attend/runs/training_run-inl.h"
#include "attend/text/conll.h"

namespace attend {
namespace {

std::string description(const PairData& data, const PairModel& model) {
  const std::string origin =
      data.held_out ? fmt::format(", held out of {}", data.train_file) : std::string();
  if (!data.text.empty())
    return fmt::format("a text of {} bytes, {} bytes for validation{}; {} tokens", data.text.size(),
                       data.valid_text.size(), origin, model.target_vocabulary.size());
  const auto counted = [&](const TokenisedExamples& part) {
    const auto [examples, sources, references] = count_examples(part.examples);
    return model.text.references == References::merged
               ? fmt::format("{} ({} lines, merged by source)", examples, references)
               : fmt::format("{}", examples);
  };
  return fmt::format("{} training and {} validation examples{}; {} source{}",
                     data.stream.source.empty() ? counted(data.train) : "streamed",
                     counted(data.valid), origin, model.source_vocabulary.size(),
                     model.answer_kind().described_targets(model));
}

// Unknown tokens do not occur in training, and make validation results look better than the model
// is.
void tell_unknown(const PairData& data, const PairModel& model, const Tell& tell) {
  const auto count = [&](const WordCounts& counts, const Vocabulary& vocabulary,
                         const std::string& side) {
    int64_t all = 0, unknown = 0;
    for (const auto& [token, times] : counts) {
      all += times;
      if (vocabulary.id(token) == Vocabulary::unknown) unknown += times;
    }
    if (unknown > 0)
      tell(fmt::format("validation: {} of {} {}tokens are unknown to the model", unknown, all,
                       side));
  };
  if (!data.valid_text.empty()) {
    TokenCounts text;
    text.add_text(data.valid_text, model.codecs.target);
    return count(text.target, model.target_vocabulary, "");
  }
  count(data.valid.sources.counts(), model.source_vocabulary, "source ");
  const AnswerKind& kind = model.answer_kind();
  if (kind.has_probabilities() && !kind.fills() && !kind.is_span())
    count(data.valid.targets.counts(), model.target_vocabulary, "target ");
}

// Columns of tokens and labels are easily taken for texts, the default.
void tell_tags(const AnswerKind& kind, const std::string& name, const Tell& tell) {
  if (names_conll(name) && !kind.is_tags())
    tell(fmt::format(
        "{}: has a target for each token; if these are labels, set model.type = tagger", name));
}

// Numbers are easily taken for labels. A few different ones may be names of classes.
void tell_numbers(const std::vector<Example>& examples, const AnswerKind& kind,
                  const std::string& name, const Tell& tell) {
  constexpr size_t max_classes = 20;
  if (!kind.is_label()) return;
  std::unordered_set<std::string_view> targets;
  for (const Example& example : examples)
    for (const std::string& target : example.targets) {
      if (!targets.insert(target).second) continue;
      if (!parse_number<double>(trimmed(target))) return;
    }
  if (targets.size() > max_classes)
    tell(
        fmt::format("{}: the labels are {} different numbers; to learn their values, set "
                    "data.target = number",
                    name, targets.size()));
}

// Labels are easily taken for texts, the default. Texts of few examples may repeat by chance.
void tell_labels(const std::vector<Example>& examples, const AnswerKind& kind,
                 const std::string& name, const Tell& tell) {
  constexpr size_t max_labels = 20, least_lines_per_label = 10;
  if (!kind.is_searched() || kind.has_labels() || kind.is_text() || kind.ranks()) return;
  if (names_conll(name)) return;  // tell_tags()
  std::unordered_set<std::string_view> targets;
  for (const Example& example : examples) {
    targets.insert(example.targets.begin(), example.targets.end());
    if (targets.size() > max_labels) return;
  }
  if (targets.empty() || examples.size() < targets.size() * least_lines_per_label) return;
  tell(
      fmt::format("{}: all targets together are {} texts; if they are labels, set model.type = "
                  "classifier",
                  name, targets.size()));
}

void tell_targets(const PairData& data, const AnswerKind& kind, const Tell& tell) {
  tell_tags(kind, data.train_file, tell);
  tell_labels(data.train.examples, kind, data.train_file, tell);
  tell_numbers(data.train.examples, kind, data.train_file, tell);
}

RunConfig config_of(const TrainOptions& options) {
  const bool resumes = options.resume && std::filesystem::is_directory(options.out) &&
                       internal::holds_model(options.out);
  return resumes ? stored_config(options) : new_config(options);
}

}  // namespace

std::string training_config(const TrainOptions& options) {
  return to_toml(config_of(options).settings(), /*with_help=*/true);
}

ModelConfig training_model(const TrainOptions& options) { return config_of(options).model; }

std::vector<Example> read_test(const TrainOptions& options, const std::string& path,
                               const Tell& tell) {
  return read_examples({path}, new_config(options).text, tell);
}

Trained train_model(const TrainOptions& options, const TrainWatch& given) {
  if (options.data.empty())
    fail(
        "--data is missing: a folder with train.tsv and valid.tsv, a TSV file, for a language "
        "model a text, or for a graph a folder with nodes.tsv and edges.tsv");
  if (options.out.empty()) fail("--out is missing: the folder to write the model to");
  const std::unique_ptr<Communicator> one = single_process();
  Communicator& world = options.world ? *options.world : *one;
  // Only rank 0 examines the folder, because it will write to it.
  std::optional<internal::ModelFolder> folder;
  if (world.leads()) folder.emplace(options.out);
  const bool resume = broadcast_number(world, folder && folder->holds_model() ? 1 : 0) > 0;
  TrainWatch watch = given;
  if (!world.leads()) watch = {.begin = given.begin, .stop = given.stop};
  if (folder) internal::check_resume(options, resume, watch.say);
  if (resume) internal::check_shared_folder(options, world);
  RunConfig config = resume ? stored_config(options) : new_config(options);
  internal::check_sharing(options, config);
  if (folder) internal::event_folder(options, config);
  std::optional<InitialModel> initial;
  if (!resume && !options.init.empty()) initial = {options.init, load_description(options.init)};
  const PairData data = read_training_data(options, config, watch.remark);
  internal::check_work_for_all(options, config, data, world);
  // A token has at least one byte, so this is an upper bound.
  const int64_t windows =
      data.text.empty() ? 0 : std::ssize(data.text) / config.model.chosen().context() + 1;
  const std::string settled = settle_by_size(config, std::ssize(data.train.examples), windows);
  if (watch.begin) watch.begin();
  torch::manual_seed(static_cast<uint64_t>(config.train.seed));
  PairModel model = resume ? load_description(options.out)
                           : internal::begin_model(options, config, data, initial,
                                                   folder ? &*folder : nullptr, watch.say);
  if (resume && model.graph != nullptr && !(*model.graph == *data.graph.graph))
    fail("--data {}: holds another graph than {}/graph.safetensors; train into a new folder",
         options.data, options.out);
  model.frames = data.frames;
  if (resume) {
    internal::check_metric(config, model);
    check_memory(model, config.train.replicas, world.processes_here());
  }
  if (const std::string slow = slow_products(loaded_blas(), measure_products()); !slow.empty())
    watch.say("warning: " + slow);
  watch.say(description(data, model));
  if (!settled.empty()) watch.say(settled);
  if (!resume) tell_targets(data, model.answer_kind(), watch.remark);
  tell_unknown(data, model, watch.remark);
  Trained trained = internal::run_training(options, config, model, data, resume, world, watch);
  trained.outcome.left_out = data.left_out;
  return trained;
}

}  // namespace attend
