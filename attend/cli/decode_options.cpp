#include "attend/cli/decode_options.h"

#include "attend/base/error.h"
#include "attend/cli/named_option.h"
#include "attend/cli/setting_options.h"
#include "attend/decode/weight_type.h"

namespace attend {

void add_column_options(CLI::App& command, std::string& source, std::string& target) {
  command
      .add_option(
          "--source-column", source,
          "source column: its name in a CSV or TSV file with a header or in JSON Lines, or "
          "its number in a .conll file (default 1) or .conllu file (default 2); given twice, "
          "for pairs of texts (data.pairs)")
      ->join('\t');
  command.add_option(
      "--target-column", target,
      "target column: its name, or the number of the label column (default: the last; .conllu: 4)");
}

void add_placement_options(CLI::App& command, DevicePlacement& placement) {
  command
      .add_option_function<std::string>(
          "--device",
          [&placement](const std::string& name) { placement.device = parse_device(name); },
          "device: cpu, cuda or cuda:1")
      ->default_str("cpu");
  command.add_option_function<std::string>(
      "--place", [&placement](const std::string& parts) { place_parts(parts, placement); },
      "devices of parts of the model: encoder=cpu,attention=cuda:0,decoder=cuda:1");
}

namespace {

// Option with an optional default in the table `decode` of the model's config.toml.
CLI::Option* add_folder_option(CLI::App& command, const Setting& setting,
                               std::string_view otherwise) {
  return add_setting_option(command, setting,
                            fmt::format("{}; default: decode.{} of the model, or {}", setting.help,
                                        setting.key, otherwise));
}

void add_model_option(CLI::App& command, DecodeOptions& options, const Setting& setting,
                      std::string_view otherwise = "1") {
  const CLI::Option* option = add_folder_option(command, setting, otherwise);
  options.defaults.push_back([option, setting](SearchOptions&, SearchOptions& own) {
    if (option->count() == 0) take_value(setting, setting_of(own.settings(), setting.key));
  });
}

void add_language_options(CLI::App& command, ModelOptions& options, const Settings& settings) {
  command.add_option("--from", options.source_language, setting_of(settings, "from").help);
  command.add_option("--to", options.target_language, setting_of(settings, "to").help);
}

void add_prompt_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--prompt-name", options.prompt_name,
                     "name of the model's prompt before the first text of each pair; default: "
                     "data.default_prompt of the model");
  command.add_option("--prompt", options.prompt,
                     "text before the first text of each pair, instead of the model's prompts; may "
                     "be empty");
}

// A default of the model gives way to a length that was given.
void add_length_options(CLI::App& command, DecodeOptions& options, const Settings& settings) {
  const CLI::Option* minimum =
      add_folder_option(command, setting_of(settings, "minimum_length"), "0");
  const CLI::Option* maximum =
      add_folder_option(command, setting_of(settings, "maximum_length"), "0");
  options.defaults.push_back([minimum, maximum](SearchOptions& lengths, SearchOptions& own) {
    lengths.take_lengths(own, minimum->count() > 0, maximum->count() > 0);
  });
}

}  // namespace

void add_search_options(CLI::App& command, DecodeOptions& options) {
  SearchOptions& search = options.search;
  const Settings settings = search.settings();
  add_language_options(command, options.model, settings);
  add_prompt_options(command, options.model);
  for (const char* name : {"beam", "length_penalty"})
    add_model_option(command, options, setting_of(settings, name));
  command.add_flag_callback(
      "--wu-length-penalty", [&search] { search.length_penalty_form = LengthPenalty::wu; },
      "use (5 + length) / 6 as the length (Wu et al. 2016)");
  const Setting& coverage = setting_of(settings, "coverage_penalty");
  add_setting_option(command, coverage, coverage.help)->capture_default_str();
  add_length_options(command, options, settings);
  add_model_option(command, options, setting_of(settings, "no_answer"), "false");
  add_named_option<UnknownTokens>(
      command, "--unknown", search.unknown,
      "replacement for unknown tokens: forbid, the next best known token; copy, the source token "
      "with the largest attention weight; keep, <unk>. Default: forbid; with model.copy: copy");
  command.add_flag("--strict", options.model.strict,
                   "refuse sources that are too long for the model instead of cutting them");
  command
      .add_option("--threads", options.model.threads,
                  "number of decoding threads; default: one per core; answers do not depend on it")
      ->check(CLI::Range(1, 1024));
}

void add_decode_options(CLI::App& command, DecodeOptions& options) {
  command
      .add_option("model", options.models,
                  "model folder; several with the same vocabularies decode as an ensemble")
      ->required();
  add_placement_options(command, options.model.placement);
  add_named_option<WeightType>(
      command, "--weights", options.model.weights,
      "type of the weights: float32; bfloat16 and int8 are faster and less exact");
  add_search_options(command, options);
  const Setting keep_seen = setting_of(options.search.settings(), "keep_seen");
  add_setting_option(command, keep_seen, keep_seen.help);
}

void take_search_defaults(DecodeOptions& options, const Model& model) {
  SearchOptions own = model.search_options();
  for (const DecodeOptions::TakeDefault& take : options.defaults) take(options.search, own);
}

void check_decode_options(const DecodeOptions& options, const Model& model) {
  if (options.search.keep_seen && !model.answer_kind().ranks())
    fail("--keep-seen: needs a model that ranks items; {} is of type {}", options.models[0],
         model.type());
  if (options.search.no_answer && !model.answer_kind().is_span())
    fail("--no-answer: needs a model that answers with parts of passages; {} is of type {}",
         options.models[0], model.type());
}

}  // namespace attend
