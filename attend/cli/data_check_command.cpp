#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/data/data_check.h"
#include "attend/data/data_format.h"
#include "attend/files/json_line.h"
#include "attend/models/model_config.h"
#include "attend/text/fasta.h"

namespace attend {
namespace {

using nlohmann::ordered_json;

struct CheckOptions {
  std::vector<std::string> files, targets, assignments;
  std::string source_column, target_column;
  bool json = false;
};

ordered_json as_json(const LengthSummary& lengths) {
  return {{"median", lengths.median},
          {"percent_90", lengths.percent_90},
          {"percent_99", lengths.percent_99},
          {"longest", lengths.longest},
          {"longest_line", lengths.longest_line}};
}

ordered_json as_json(const SideSummary& side) {
  return {{"words", as_json(side.words)}, {"characters", as_json(side.characters)}};
}

ordered_json as_json(const FileSummary& file) {
  ordered_json result = {{"path", file.path},
                         {"lines", file.lines},
                         {"files_read", file.media},
                         {"repeated", file.repeated},
                         {"source", as_json(file.source)}};
  if (!file.columns.empty()) result["columns"] = file.columns;
  if (!file.fault.empty()) result["fault"] = file.fault;
  if (file.pairs) {
    result["several_targets"] = file.several_targets;
    result["target"] = as_json(file.target);
  }
  result["odd"] = ordered_json::array();
  for (const OddLines& odd : file.odd)
    result["odd"].push_back({{"kind", odd.kind}, {"count", odd.count}, {"lines", odd.lines}});
  if (!file.labels.empty()) {
    result["labels"] = ordered_json::object();
    for (const auto& [label, count] : file.labels) result["labels"][label] = count;
  }
  return result;
}

ordered_json as_json(const FormatSummary& file) {
  ordered_json result = {{"path", file.path}};
  for (const auto& [name, count] : file.counts) result[name] = count;
  result["malformed"] = file.malformed;
  if (!file.fault.empty()) result["fault"] = file.fault;
  result["remarks"] = file.remarks;
  return result;
}

ordered_json as_json(const DataSummary& summary) {
  ordered_json result = {{"files", ordered_json::array()}, {"overlaps", ordered_json::array()}};
  for (const FileSummary& file : summary.files) result["files"].push_back(as_json(file));
  for (const Overlap& overlap : summary.overlaps)
    result["overlaps"].push_back({{"path", overlap.path},
                                  {"sources", overlap.sources},
                                  {"pairs", overlap.pairs},
                                  {"examples", overlap.examples},
                                  {"new_labels", overlap.new_labels}});
  return result;
}

void print_lengths(std::string_view name, const LengthSummary& lengths) {
  fmt::print("  {:<18}{:>8}{:>8}{:>8}{:>9}", name, lengths.median, lengths.percent_90,
             lengths.percent_99, lengths.longest);
  if (lengths.longest_line > 0) fmt::print("  line {}", lengths.longest_line);
  fmt::print("\n");
}

void print_fault(const std::string& fault) {
  if (!fault.empty()) fmt::print("  training stops: {}\n", fault);
}

void print_file(const FileSummary& file) {
  fmt::print(
      "{}\n"
      "  {} {}, {} of them repeated{}\n",
      file.path, file.lines, file.unit, file.repeated,
      file.pairs ? fmt::format("; {} sources with several targets", file.several_targets) : "");
  if (!file.pairs && !is_fasta(file.path))
    fmt::print("  read as texts, as its first line has no TAB\n");
  if (!file.columns.empty())
    fmt::print("  the columns {} and {} are read\n", in_quotes(file.columns[0]),
               in_quotes(file.columns[1]));
  if (file.media > 0) fmt::print("  {} images or sounds were read\n", file.media);
  fmt::print("  {:<18}{:>8}{:>8}{:>8}{:>9}\n", "length", "median", "90 %", "99 %", "longest");
  print_lengths("source words", file.source.words);
  print_lengths("source characters", file.source.characters);
  if (file.pairs) {
    print_lengths("target words", file.target.words);
    print_lengths("target characters", file.target.characters);
  }
  for (const auto& [label, count] : file.labels) fmt::print("  label {}: {}\n", label, count);
  for (const OddLines& odd : file.odd) {
    fmt::print("  {} {} {} ({}{}): {}\n", odd.count, file.unit, odd.meaning,
               fmt::join(odd.lines, ", "),
               odd.count > static_cast<int64_t>(odd.lines.size()) ? ", .." : "", odd.remedy);
    if (!odd.example.empty()) fmt::print("    {}\n", odd.example);
  }
  print_fault(file.fault);
  fmt::print("\n");
}

void print_format(const FormatSummary& file) {
  fmt::print("{}\n", file.path);
  for (auto [name, count] : file.counts) {
    std::replace(name.begin(), name.end(), '_', ' ');
    fmt::print("  {:<28}{:>9}\n", name, count);
  }
  if (file.malformed > 0)
    fmt::print("  {:<28}{:>9}\n", "lines that cannot be read", file.malformed);
  for (const std::string& remark : file.remarks) fmt::print("    {}\n", remark);
  print_fault(file.fault);
  fmt::print("\n");
}

void print_overlap(const std::string& first, const Overlap& overlap, const FileSummary& file) {
  if (overlap.sources == 0) {
    fmt::print("{} shares no source with {}\n", overlap.path, first);
  } else {
    const double share =
        100.0 * static_cast<double>(overlap.sources) / static_cast<double>(file.lines);
    fmt::print(
        "{} shares {} sources ({:.2f} %) with {}, {} of them with the target: remove them "
        "from one, or figures will flatter\n",
        overlap.path, overlap.sources, share, first, overlap.pairs);
    for (const std::string& example : overlap.examples) fmt::print("    {}\n", in_quotes(example));
  }
  if (!overlap.new_labels.empty())
    fmt::print("{} has {} labels that {} lacks: {}; a model cannot answer them\n", overlap.path,
               overlap.new_labels.size(), first, fmt::join(overlap.new_labels, ", "));
}

// The path itself, or the files of a folder for training and evaluation.
std::vector<std::string> files_of(const std::string& path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const char* name :
       {"train.tsv", "valid.tsv", "test.tsv", "train.txt", "valid.txt", "test.txt"})
    if (const fs::path file = fs::path(path) / name; fs::exists(file)) files.push_back(file);
  if (files.empty())
    fail("{}: holds no train.tsv, valid.tsv, test.tsv or the like of .txt, and no nodes.tsv", path);
  return files;
}

// Returns the defaults of model.type, if --set names it. Error on other keys than data.*.
std::optional<TextConfig> named_defaults(const CheckOptions& options) {
  std::optional<TextConfig> text;
  ModelConfig model;
  const Setting type = model.type_setting();
  for (const std::string& assignment : options.assignments) {
    if (assigned_key(assignment) == type.key) {
      assign({type}, assignment);
      text = model.row().text;
    } else if (!assigned_key(assignment).starts_with("data.")) {
      fail("--set {}: does not change how data are read; leave it out", assignment);
    }
  }
  return text;
}

// Sets the defaults of the only type that reads such a format or answers with such targets.
void take_only_defaults(TextConfig& text) {
  for (const ModelType* type : model_types()) {
    const TextConfig& own = type->text;
    if (text.format_row().is_split() ? own.format != text.format
                                     : own.target != text.target || own.target == TargetKind::text)
      continue;
    const TargetKind target = text.target;
    text = own;
    text.target = target;
    return;
  }
}

// Returns the settings for reading the data: from --set, the defaults of the type, and the format
// of the file in the folder.
TextConfig text_of(const CheckOptions& options, const std::string& path) {
  const std::optional<TextConfig> defaults = named_defaults(options);
  TextConfig text = defaults.value_or(TextConfig());
  for (const DataFormatRow& row : data_formats())
    if (row.is_folder() && std::filesystem::is_directory(path) &&
        std::filesystem::exists(std::filesystem::path(path) / row.examples_file))
      text.format = row.format;
  // These decide which other keys exist.
  const Settings leading = {text.format_setting(), text.source_units_setting(),
                            text.target_setting()};
  for (const std::string& assignment : options.assignments)
    for (const Setting& setting : leading)
      if (assigned_key(assignment) == setting.key) assign({setting}, assignment);
  if (!defaults) take_only_defaults(text);
  Settings known = leading;
  if (text.wants_labels()) known.push_back(text.label_separator_setting());
  if (text.format_row().is_split())
    known = text.settings();
  else if (text.source_kind() != nullptr)
    append(known, text.frames.settings());
  else
    known.push_back(text.pairs_setting());
  for (const std::string& assignment : options.assignments)
    if (assigned_key(assignment).starts_with("data.")) assign(known, assignment);
  return text;
}

void run_check(const CheckOptions& options) {
  if (!options.targets.empty() && options.targets.size() != options.files.size())
    fail("--target: {} files for {} files of sources; give one each", options.targets.size(),
         options.files.size());
  std::vector<PairFiles> files;
  TextConfig pair_config;
  std::vector<FormatSummary> others;
  for (size_t i = 0; i < options.files.size(); ++i) {
    const TextConfig text = text_of(options, options.files[i]);
    if (text.format_row().is_split()) {
      others.push_back(check_format(options.files[i], text));
      continue;
    }
    pair_config = text;
    for (const std::string& path : files_of(options.files[i]))
      files.push_back({path, options.targets.empty() ? "" : options.targets[i],
                       options.source_column, options.target_column});
  }
  bool stops = std::any_of(others.begin(), others.end(), [](const FormatSummary& file) {
    return file.malformed > 0 || !file.fault.empty();
  });
  const DataSummary summary = files.empty() ? DataSummary() : check_data(files, pair_config);
  if (options.json) {
    ordered_json report = as_json(summary);
    for (const FormatSummary& file : others) report["files"].push_back(as_json(file));
    fmt::print("{}\n", json_line(report));
  } else {
    for (const FormatSummary& file : others) print_format(file);
    for (const FileSummary& file : summary.files) print_file(file);
    for (size_t i = 0; i < summary.overlaps.size(); ++i)
      print_overlap(summary.files[0].path, summary.overlaps[i], summary.files[i + 1]);
  }
  for (const FileSummary& file : summary.files)
    stops |=
        !file.fault.empty() || std::any_of(file.odd.begin(), file.odd.end(),
                                           [](const OddLines& odd) { return odd.stops_training; });
  if (stops) throw CLI::RuntimeError(1);
}

}  // namespace

void add_data_check_command(CLI::App& data) {
  auto options = std::make_shared<CheckOptions>();
  auto* command = data.add_subcommand(
      "check", "Look for faults in data: odd lines, repetitions, test lines in training");
  command
      ->add_option(
          "files", options->files,
          "TSV, CSV or JSON Lines files of pairs, texts, or folders with train.tsv, valid.tsv and "
          "test.tsv; "
          "the first file, usually the training data, is compared with the others; folders of "
          "graphs, with nodes.tsv and edges.tsv; or files of the kind that data.format names")
      ->type_name("FILE")
      ->required();
  command->add_option("--target", options->targets,
                      "files of targets, if the other files hold only sources");
  add_column_options(*command, options->source_column, options->target_column);
  command->add_option("--set", options->assignments,
                      "KEY=VALUE: model.type, for its defaults of data.*; data.format; for pairs "
                      "data.source_units, data.target, data.label_separator, data.pairs and the "
                      "settings of images, sounds and sets; for other formats all their data.*");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      "Examples:\n"
      "  attend data check train.tsv valid.tsv test.tsv\n"
      "  attend data check train.en.gz test.en.gz --target train.de.gz test.de.gz\n"
      "  attend data check data    # train.tsv, valid.tsv and test.tsv of a folder\n"
      "  attend data check cora    # nodes.tsv and edges.tsv\n"
      "  attend data check shop.csv --set data.format=interactions\n"
      "  attend data check molecules.tsv --set data.source_units=smiles\n"
      "  attend data check topics.csv --set data.target=labels\n"
      "  attend data check facts.tsv --set model.type=reader\n"
      "If most sources name images or sounds, or data.source_units says so, these files are\n"
      "read too.\n"
      "The exit code is 1 if training would stop at a line, or could learn nothing, as from one\n"
      "class. Some data are checked only if --set names a setting of the training:\n"
      "  molecules               data.source_units=smiles, or molecule\n"
      "  sets                    model.type=set\n"
      "  numbers                 data.target=number, or probability\n"
      "  several labels          data.target=labels\n"
      "  pairs of texts          data.pairs=always\n"
      "  questions and passages  model.type=reader\n"
      "JSON keys: files: [{path, lines, files_read (images and sounds), repeated, source:\n"
      "{words, characters: {median, percent_90, percent_99, longest, longest_line}}, odd:\n"
      "[{kind, count, lines}], fault (if training would stop at no single line)}]; for pairs also\n"
      "several_targets and target, for tables columns, for labels labels: {label: lines}, or of\n"
      ".conll files {label: tokens}; overlaps with the first file: [{path, sources, pairs,\n"
      "examples, new_labels}].\n"
      "For graphs and interactions: files: [{path, counts of each kind, malformed (lines that\n"
      "cannot be read), fault, remarks}].");
  command->callback([options] { run_check(*options); });
}

}  // namespace attend
