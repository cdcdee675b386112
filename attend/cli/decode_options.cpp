#include "attend/cli/decode_options.h"

#include "attend/base/error.h"
#include "attend/cli/named_option.h"
#include "attend/steps/weight_type.h"

namespace attend {

void add_column_options(CLI::App& command, std::string& source, std::string& target) {
  command.add_option("--source-column", source,
                     "source column: its name in a CSV file with a header, or its number in a "
                     ".conll file (default 1) or .conllu file (default 2)");
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

// Option with an optional default in the model's folder (decode.* of config.toml).
template <class Value>
CLI::Option* add_model_option(CLI::App& command, DecodeOptions& options, const char* name,
                              Value SearchOptions::*member, const char* help) {
  CLI::Option* option = command.add_option(name, options.search.*member, help);
  options.defaults.push_back([option, member](SearchOptions& search, const SearchOptions& own) {
    if (option->count() == 0) search.*member = own.*member;
  });
  return option;
}

// A default of the model gives way to a length that was given.
void add_length_options(CLI::App& command, DecodeOptions& options) {
  SearchOptions& search = options.search;
  const CLI::Option* minimum =
      command
          .add_option(
              "--minimum-length", search.minimum_length,
              "minimum number of tokens of an answer; default: decode.minimum_length of the "
              "model, or 0")
          ->check(CLI::Range(0, 1000000));
  const CLI::Option* maximum =
      command
          .add_option("--maximum-length", search.maximum_length,
                      "maximum number of tokens of an answer after a prefix; default: "
                      "decode.maximum_length of the model, or 3 per source token plus 10, or "
                      "--minimum-length if that is more")
          ->check(CLI::Range(1, 1000000));
  options.defaults.push_back([minimum, maximum](SearchOptions& lengths, const SearchOptions& own) {
    lengths.take_lengths(own, minimum->count() > 0, maximum->count() > 0);
  });
}

}  // namespace

void add_search_options(CLI::App& command, DecodeOptions& options) {
  SearchOptions& search = options.search;
  add_model_option(
      command, options, "--beam", &SearchOptions::beam,
      "beam size: hypotheses kept; 1 is greedy search; default: decode.beam of the model, or 1")
      ->check(CLI::Range(1, 1000));
  add_model_option(command, options, "--length-penalty", &SearchOptions::length_penalty,
                   "rank by log probability / length^this; 0: no penalty; default: "
                   "decode.length_penalty of the model, or 1")
      ->check(CLI::Range(0.0, 10.0));
  command.add_flag_callback(
      "--wu-length-penalty", [&search] { search.length_penalty_form = LengthPenalty::wu; },
      "use (5 + length) / 6 as the length (Wu et al. 2016)");
  command
      .add_option("--coverage-penalty", search.coverage_penalty,
                  "weight of the penalty for source tokens without attention (Wu et al. 2016)")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  add_length_options(command, options);
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
  command.add_flag("--keep-seen", options.search.keep_seen,
                   "rank items of the history, too (models that rank items)");
}

void take_search_defaults(DecodeOptions& options, const Model& model) {
  const SearchOptions own = model.search_options();
  for (const DecodeOptions::TakeDefault& take : options.defaults) take(options.search, own);
}

void check_decode_options(const DecodeOptions& options, const Model& model) {
  if (options.search.keep_seen && !model.answers().ranks())
    fail("--keep-seen: needs a model that ranks items; {} is of type {}", options.models[0],
         model.type());
}

}  // namespace attend
