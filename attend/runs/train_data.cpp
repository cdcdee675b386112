#include "attend/runs/train_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/data_format.h"
#include "attend/data/readable.h"
#include "attend/data/source_key.h"
#include "attend/data/split.h"
#include "attend/data/tables.h"
#include "attend/data/text_codec.h"
#include "attend/metrics/metric.h"
#include "attend/models/model_type.h"
#include "attend/models/new_pair_model.h"
#include "attend/text/fasta.h"
#include "attend/text/text_lines.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

// With options.skip_bad, lines with a wrong number of labels are bad lines.
PairFiles checked(PairFiles files, const TrainOptions& options, const RunConfig& config) {
  if (options.skip_bad) files.check = label_check(config.text, config.model);
  return in_form(std::move(files), config.text);
}

PairFiles training_files(const TrainOptions& options) {
  if (fs::is_directory(options.data)) return {options.data + "/train.tsv"};
  return {options.data, options.target, options.source_column, options.target_column};
}

// Whether one file holds both training and validation data.
bool is_split(const TrainOptions& options) {
  return options.valid.empty() && !fs::is_directory(options.data);
}

PairFiles validation_files(const TrainOptions& options) {
  if (options.valid.empty()) return {options.data + "/valid.tsv"};
  return {options.valid, options.valid_target, options.source_column, options.target_column};
}

// Returns the names of the types for which `takes` is true.
std::string type_names(const std::function<bool(const ModelType&)>& takes) {
  std::vector<std::string> names;
  for (const ModelType* type : model_types())
    if (takes(*type)) names.push_back(type->name);
  return fmt::format("{}", fmt::join(names, " or "));
}

// A folder without pairs may hold data of other types.
void check_folder(const std::string& folder) {
  if (!fs::is_directory(folder) || fs::exists(folder + "/train.tsv")) return;
  for (const DataFormatRow& row : data_formats())
    if (row.is_folder() && fs::exists(fmt::format("{}/{}", folder, row.examples_file)))
      fail("--data {}: holds {} and no train.tsv; set model.type = {}", folder, row.examples_file,
           type_names([&](const ModelType& type) { return type.text.format == row.format; }));
  if (fs::exists(folder + "/train.txt"))
    fail("--data {}: holds train.txt and no train.tsv; set model.type = {}", folder,
         type_names([](const ModelType& type) { return type.answers->is_text(); }));
}

void check_files(const TrainOptions& options, const TextConfig& text) {
  const bool has_columns = !options.source_column.empty() || !options.target_column.empty();
  if (has_columns && fs::is_directory(options.data))
    fail(
        "--source-column, --target-column: {0} is a folder, and the columns are in its files; "
        "give them, as --data {0}/train.csv --valid {0}/valid.csv",
        options.data);
  if (has_columns && !options.target.empty())
    fail(
        "--source-column, --target-column: need a CSV, .conll or .conllu file; give it with "
        "--data, without --target");
  const SourceKind* kind = text.source_kind();
  if (!options.target.empty() && kind != nullptr && kind->placed != nullptr)
    fail("--target {}: images and sounds are named in a TSV file with their targets",
         options.target);
  if (!options.target.empty() && fs::is_directory(options.data))
    fail("--target {}: but --data {} is a folder; give the file of the sources", options.target,
         options.data);
  if (!options.valid_target.empty() && options.valid.empty())
    fail("--valid-target {}: needs --valid, the file of the sources", options.valid_target);
  if (!options.target.empty() && !options.valid.empty() && options.valid_target.empty())
    fail("--valid {}: its targets are missing; give --valid-target", options.valid);
}

// Examples before tokenisation.
struct Texts {
  std::vector<Example> train, valid;
};

// Splits by a hash of the source's key, as the dictionary does.
Texts split(std::vector<Example> all, const TextConfig& text, const std::string& name) {
  std::vector<std::string> keys;
  keys.reserve(all.size());
  for (const Example& example : all) keys.push_back(source_key(example.source, text));
  const std::vector<bool> held = held_out(keys);
  Texts parts;
  for (size_t i = 0; i < all.size(); ++i)
    (held[i] ? parts.valid : parts.train).push_back(std::move(all[i]));
  if (parts.valid.empty())
    fail(
        "{}: all examples have the source {}, so none can be held out for validation; give "
        "--valid FILE",
        name, in_quotes(parts.train[0].source));
  return parts;
}

// Detects a header among the examples: it would be a class with a single example.
class HeaderSearch {
 public:
  explicit HeaderSearch(const RunConfig& config)
      : searches_(config.answer_kind().has_labels()), is_one_(config.answer_kind().is_label()) {
    if (searches_ && !is_one_) codec_ = make_codecs(config.text).target;
  }

  bool searches() const { return searches_; }

  void add(const Example& example) {
    if (!searches_) return;
    for (const std::string& target : example.targets)
      for (const std::string& label : labels_of(target)) {
        if (labels_.empty()) first_ = {label, example.source};
        ++labels_[label];
      }
  }

  void tell(const std::string& name, const Tell& tell) const {
    if (searches_ && !labels_.empty() && is_header(first_.first, labels_))
      tell(fmt::format("{}: label {} is only in the first line, {}; if that is a header, remove it",
                       name, in_quotes(first_.first), in_quotes(first_.second)));
  }

 private:
  std::vector<std::string> labels_of(const std::string& target) const {
    return is_one_ ? std::vector<std::string>{target} : codec_.split(target);
  }

  bool searches_, is_one_;
  TextCodec codec_;
  WordCounts labels_;
  std::pair<std::string, std::string> first_;  // label and source
};

// Answers have the normal form the model learns; users should be aware of this.
void tell_form(const std::vector<Example>& examples, const TextConfig& text,
               const std::string& name, const Tell& tell) {
  const NormalForm form = text.normalise;
  int64_t others = 0;
  for (const Example& example : examples)
    for (const std::string& target : example.targets) others += normalised(target, form) != target;
  if (others > 0)
    tell(fmt::format("{}: {} targets are not in the normal form of answers (data.normalise = {})",
                     name, others, name_of(text.normalise)));
}

// The same for data with a fixed form instead of a setting.
void tell_form(const std::vector<Example>& examples, const std::string& name, const Tell& tell) {
  const auto others = std::count_if(examples.begin(), examples.end(), [](const Example& example) {
    return normalised(example.targets[0], NormalForm::nfc) != example.targets[0];
  });
  if (others > 0)
    tell(fmt::format("{}: {} targets are not in NFC, the normal form of answers", name, others));
}

// The same for a text.
void tell_form(const std::string& text, NormalForm form, const std::string& name,
               const Tell& tell) {
  if (normalised(text, form) != text)
    tell(fmt::format("{}: is not in the normal form of answers (data.normalise = {})", name,
                     name_of(form)));
}

// Names of files are also texts.
void tell_names(const std::vector<Example>& examples, const TextConfig& text,
                const std::string& name, const Tell& tell) {
  if (text.source_kind() != nullptr) return;
  if (const SourceKind* kind = named_files(examples, name); kind != nullptr)
    tell(
        fmt::format("{}: sources are read as texts, and name files; to read the files, set "
                    "data.source_units = {}",
                    name, kind->name));
}

// Counts a file once, even if several examples name it.
void tell_colours(FrameReader& frames, const Texts& texts, const Tell& tell) {
  int64_t count = 0;
  std::string first;
  for (const std::vector<Example>* part : {&texts.train, &texts.valid})
    for (const Example& example : *part) {
      const int64_t before = frames.converted_to_grey();
      frames.read(example.source);
      if (frames.converted_to_grey() == before) continue;
      if (count++ == 0) first = example.source;
    }
  if (count > 0)
    tell(fmt::format("{}{} in colour; images are read in grey (data.colours = false)", first,
                     count == 1 ? ": is" : fmt::format(" and {} more: are", count - 1)));
}

// Networks learn badly from numbers far outside the scale of the initial weights.
void tell_large_numbers(const SourceKind& kind, FrameReader& frames,
                        const std::vector<Example>& examples, const std::string& name,
                        const Tell& tell) {
  constexpr double maximum = 10;
  if (kind.scale_key == nullptr) return;
  double largest = 0;
  for (const Example& example : examples)
    largest = std::max(largest, frames.read(example.source).abs().max().item<double>());
  if (largest > maximum)
    tell(fmt::format(
        "{}: numbers up to {:.4g} are hard to learn from; make {} {:.2g} times as large", name,
        largest, kind.scale_key, largest / 2));
}

// Unless null, `frames` removes examples with unreadable files, which are added to `bad`.
std::vector<Example> read_file_of_pairs(const PairFiles& files, const RunConfig& config,
                                        FrameReader* frames, const Tell& tell, int64_t* bad) {
  std::vector<Example> examples = read_examples(files, config.text, tell, bad);
  if (bad != nullptr && frames != nullptr)
    *bad += take_out_unreadable(examples, *frames, files.source, tell);
  return examples;
}

Texts read_both(const TrainOptions& options, const RunConfig& config, FrameReader* frames,
                const Tell& tell, int64_t* bad) {
  const PairFiles files = checked(training_files(options), options, config);
  std::vector<Example> train = read_file_of_pairs(files, config, frames, tell, bad);
  HeaderSearch header(config);
  for (const Example& example : train) header.add(example);
  header.tell(files.source, tell);
  tell_form(train, config.text, files.source, tell);
  tell_names(train, config.text, files.source, tell);
  if (is_split(options)) return split(std::move(train), config.text, options.data);
  const PairFiles others = checked(validation_files(options), options, config);
  return {std::move(train), read_file_of_pairs(others, config, frames, tell, bad)};
}

std::string file_of(const TrainOptions& options, const DataFormatRow& row) {
  return row.is_folder() ? fmt::format("{}/{}", options.data, row.examples_file) : options.data;
}

// Reads data that assigns its examples to parts itself; `graph` receives their nodes, if any.
Texts read_parts(const TrainOptions& options, const RunConfig& config, const Tell& tell,
                 int64_t* bad, SplitData& graph) {
  const DataFormatRow& row = config.text.format_row();
  if (!options.valid.empty())
    fail("--valid {}: is for pairs, and data.format is {}: {}; leave it out", options.valid,
         name_of(config.text.format), row.parts);
  if (config.train.shuffle_buffer > 0)
    fail("train.shuffle_buffer: is for pairs; data of format {} is held in memory: set it to 0",
         name_of(config.text.format));
  SplitData data =
      read_split({options.data, options.target, options.source_column, options.target_column},
                 config.text, tell, bad);
  if (data.train.empty()) fail("{}: {}", file_of(options, row), row.no_train);
  if (data.valid.empty()) fail("{}: {}", file_of(options, row), row.no_valid);
  if (config.answer_kind().has_probabilities()) tell_form(data.train, file_of(options, row), tell);
  graph.graph = std::move(data.graph);
  graph.names = std::move(data.names);
  return {std::move(data.train), std::move(data.valid)};
}

// Reads the file once for a header and, with options.skip_bad, for bad lines. They are reported
// only once, not per epoch, and added to `left_out`.
PairFiles stream_of(const TrainOptions& options, const RunConfig& config, const Tell& tell,
                    int64_t& left_out) {
  PairFiles files = checked(training_files(options), options, config);
  files.check = both_checks(files.check, pair_check(config.text));
  HeaderSearch header(config);
  if (!options.skip_bad && !header.searches()) return files;
  const Tell nothing = [](const std::string&) {};
  each_pair(
      files, [&](Example&& example) { header.add(example); }, options.skip_bad ? tell : nothing,
      options.skip_bad ? &left_out : nullptr);
  header.tell(files.source, tell);
  if (!options.skip_bad) return files;
  files.leave_out = [](const std::string&) {};
  return files;
}

std::vector<Example> read_streamed_validation(const TrainOptions& options, const RunConfig& config,
                                              const Tell& tell, int64_t* bad) {
  if (config.text.source_kind() != nullptr)
    fail(
        "train.shuffle_buffer: is for texts; images, sounds, sets and molecules are held in "
        "memory: set it to 0");
  if (is_split(options))
    fail("--valid is missing: with train.shuffle_buffer, --data {} is not split", options.data);
  const PairFiles files = checked(validation_files(options), options, config);
  return read_examples(files, config.text, tell, bad);
}

// The time of a step grows with the square of its longest target, so a single target that no answer
// could equal would stall training.
TokenisedExamples within_limits(std::vector<Example> examples, const TrainOptions& options,
                                const RunConfig& config, const TextCodecs& codecs,
                                FrameReader* frames, const std::string& name, const Tell& tell) {
  const AnswerKind& kind = config.answer_kind();
  const int64_t longest = kind.longest_target(config.model.chosen());
  TokenisedExamples result =
      tokenise_examples(std::move(examples), codecs, options.strict ? no_limit : longest);
  if (options.strict) check_lengths(config, result, frames, name);
  if (result.left_out == 0) return result;
  tell(
      fmt::format("{}: {} targets of over {} tokens are left out: answers cannot be that long ({})",
                  name, result.left_out, longest, kind.target_limit()));
  if (result.examples.empty()) fail("{}: has only such targets; split them", name);
  return result;
}

// Lengths of images and sounds are only known after reading.
void tell_cut_sources(const RunConfig& config, const TokenisedTexts& sources,
                      const std::string& name, const Tell& tell) {
  if (config.answer_kind().is_span()) return;  // long passages are read in parts
  const int64_t longest = config.model.chosen().maximum_source_length();
  int64_t cut = 0;
  for (int64_t i = 0; i < sources.size(); ++i) cut += std::ssize(sources[i]) > longest ? 1 : 0;
  if (cut > 0)
    tell(fmt::format("{}: {} sources are cut to their {} {} tokens ({})", name, cut,
                     config.answer_kind().kept_part(), longest,
                     config.answer_kind().source_limit()));
}

// Sets the last tenth of a text aside, approximately: it begins at the nearest line start. A text
// of one line is cut before a character; a FASTA sequence, which is one line, is never cut.
void set_last_tenth_aside(PairData& data, const std::string& name) {
  const std::string& text = data.text;
  const size_t tenth = text.size() * 9 / 10;
  const size_t before = tenth == 0 ? 0 : text.rfind('\n', tenth - 1) + 1;  // 0: no line before
  const size_t after = text.find('\n', tenth) + 1;
  size_t cut = before > 0 && tenth - before <= after - tenth ? before : after;
  if (cut == text.size()) cut = before;
  if (cut == 0 && !is_fasta(name))
    for (cut = tenth; cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80;) --cut;
  data.valid_text = data.text.substr(cut);
  data.text.resize(cut);
  if (cut == 0) fail("{}: is too short to set some aside for validation; give --valid FILE", name);
}

PairData read_texts(const TrainOptions& options, const RunConfig& config, const Tell& tell,
                    int64_t* bad) {
  if (config.train.shuffle_buffer > 0)
    fail("train.shuffle_buffer: is for pairs; a text is held in memory: set it to 0");
  if (metric_named(config.train.metric).of_answers())
    fail("train.metric = {}: compares answers, which a text lacks; set it to loss",
         config.train.metric);
  const bool folder = fs::is_directory(options.data);
  PairData data;
  const std::string file = folder ? options.data + "/train.txt" : options.data;
  data.text = read_text(file, tell, bad);
  tell_form(data.text, config.text.normalise, file, tell);
  if (folder || !options.valid.empty())
    data.valid_text =
        read_text(options.valid.empty() ? options.data + "/valid.txt" : options.valid, tell, bad);
  else
    set_last_tenth_aside(data, options.data);
  data.train_file = file;
  data.held_out = is_split(options);
  if (bad != nullptr) data.left_out = *bad;
  return data;
}

Texts read_text_lines(const TrainOptions& options, const RunConfig& config, const Tell& tell,
                      int64_t* bad) {
  const PairData texts = read_texts(options, config, tell, bad);
  Texts lines{lines_of(texts.text), lines_of(texts.valid_text)};
  if (lines.valid.empty())
    fail("{}: holds no line to set aside for validation; give --valid FILE", options.data);
  return lines;
}

}  // namespace

void check_lengths(const RunConfig& config, const TokenisedExamples& tokenised, FrameReader* frames,
                   const std::string& name) {
  const int64_t longest_source = config.model.chosen().maximum_source_length();
  const AnswerKind& answers = config.answer_kind();
  const int64_t longest_target = answers.longest_target(config.model.chosen());
  const SourceKind* kind = config.text.source_kind();
  // The number of frames on a grid is fixed.
  const bool grid = kind != nullptr && kind->shape(config.text.frames).is_grid();
  int64_t next_example = 0, next_target = 0;
  for (const Example& example : tokenised.examples) {
    const int64_t text = next_example++;
    const int64_t tokens = grid              ? 0
                           : kind != nullptr ? frames->read(example.source).size(0)
                                             : std::ssize(tokenised.sources[text]);
    if (tokens > longest_source && !answers.is_span())
      fail(
          "{}: source {} has {} tokens, over model.maximum_source_length = {}; raise that, or "
          "leave out --strict to cut it",
          name, in_quotes(example.source), tokens, longest_source);
    for (const std::string& target : example.targets) {
      const int64_t answered = std::ssize(tokenised.targets[next_target++]);
      if (answered > longest_target)
        fail(
            "{}: target {} has {} tokens, over {} ({}); raise that, or leave out --strict to skip "
            "it",
            name, in_quotes(target), answered, longest_target, answers.target_limit());
    }
  }
}

PairData read_training_data(const TrainOptions& options, const RunConfig& config,
                            const Tell& tell) {
  if (!fs::exists(options.data)) fail("--data {}: no such file or folder", options.data);
  check_files(options, config.text);
  const AnswerKind& kind = config.answer_kind();
  const bool text = options.target.empty() && kind.is_text() && names_text(options.data);
  int64_t left_out = 0;
  int64_t* bad = options.skip_bad ? &left_out : nullptr;
  const DataFormatRow& format = config.text.format_row();
  if (!text && !format.is_split()) check_folder(options.data);
  if (text && kind.continues()) return read_texts(options, config, tell, bad);
  const bool streamed = !text && config.train.shuffle_buffer > 0;
  SplitData graph;
  std::shared_ptr<FrameReader> frames;
  if (const SourceKind* kind = config.text.source_kind(); kind != nullptr)
    frames = std::make_shared<FrameCache>(*kind, config.text.frames);
  Texts texts = text                ? read_text_lines(options, config, tell, bad)
                : format.is_split() ? read_parts(options, config, tell, bad, graph)
                : streamed ? Texts{{}, read_streamed_validation(options, config, tell, bad)}
                           : read_both(options, config, frames.get(), tell, bad);
  if (const SourceKind* kind = config.text.source_kind(); kind != nullptr) {
    if (kind->has_colours && !config.text.frames.colours) tell_colours(*frames, texts, tell);
    tell_large_numbers(*kind, *frames, texts.train, options.data, tell);
  }
  const TextCodecs codecs = make_codecs(config.text);
  const auto prepared = [&](std::vector<Example>& examples, const std::string& part) {
    const std::string name = options.data + part;
    TokenisedExamples result =
        within_limits(std::move(examples), options, config, codecs, frames.get(), name, tell);
    tell_cut_sources(config, result.sources, name, tell);
    return result;
  };
  const bool one_file = format.is_split() || is_split(options);
  const std::string whole = file_of(options, format);
  PairData data{.train = prepared(texts.train, ", training"),
                .valid = prepared(texts.valid, ", validation"),
                .train_file = one_file ? whole : training_files(options).source,
                .valid_file = one_file ? whole : validation_files(options).source,
                .held_out = is_split(options) && !format.is_split(),
                .left_out = left_out,
                .frames = frames,
                .graph = std::move(graph)};
  if (streamed) {
    data.stream = stream_of(options, config, tell, data.left_out);
  } else {
    // Number targets are checked by their deviation; passages differ even if answers are equal.
    if (kind.has_probabilities() && !kind.is_span())
      check_targets(data.train.targets,
                    data.held_out ? options.data + " without the examples held out for validation"
                                  : options.data);
  }
  return data;
}

}  // namespace attend
