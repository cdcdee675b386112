#include "attend/cli/decode_options.h"

#include "attend/base/error.h"
#include "attend/cli/named_option.h"
#include "attend/steps/weight_type.h"

namespace attend {

void add_column_options(CLI::App& command, std::string& source, std::string& target) {
  command.add_option(
      "--source-column", source,
      "of a CSV file with a header: the name of the sources' column; of a .conll or .conllu file: "
      "the number of the tokens' column, otherwise the first, of .conllu the second");
  command.add_option("--target-column", target,
                     "the name of the targets' column, or the number of the labels', otherwise the "
                     "last, of .conllu the fourth");
}

void add_placement_options(CLI::App& command, DevicePlacement& placement) {
  command
      .add_option_function<std::string>(
          "--device",
          [&placement](const std::string& name) { placement.device = parse_device(name); },
          "where the model computes: cpu, cuda or cuda:1")
      ->default_str("cpu");
  command.add_option_function<std::string>(
      "--place", [&placement](const std::string& parts) { place_parts(parts, placement); },
      "parts that compute elsewhere: encoder=cpu,attention=cuda:0,decoder=cuda:1");
}

namespace {

// An option whose default the model folder may have (decode.* of config.toml).
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
          .add_option("--minimum-length", search.minimum_length,
                      "minimum tokens of an answer; else decode.minimum_length of the model, or 0")
          ->check(CLI::Range(0, 1000000));
  const CLI::Option* maximum =
      command
          .add_option(
              "--maximum-length", search.maximum_length,
              "maximum tokens of an answer after a prefix; else decode.maximum_length of "
              "the model, or 3 per source token and 10, or --minimum-length if that is more")
          ->check(CLI::Range(1, 1000000));
  options.defaults.push_back([minimum, maximum](SearchOptions& lengths, const SearchOptions& own) {
    lengths.take_lengths(own, minimum->count() > 0, maximum->count() > 0);
  });
}

}  // namespace

void add_search_options(CLI::App& command, DecodeOptions& options) {
  SearchOptions& search = options.search;
  add_model_option(command, options, "--beam", &SearchOptions::beam,
                   "hypotheses kept; 1 is greedy search; else decode.beam of the model, or 1")
      ->check(CLI::Range(1, 1000));
  add_model_option(command, options, "--length-penalty", &SearchOptions::length_penalty,
                   "rank by log probability / length^this; 0 is none; else decode.length_penalty "
                   "of the model, or 1")
      ->check(CLI::Range(0.0, 10.0));
  command.add_flag_callback(
      "--wu-length-penalty", [&search] { search.length_penalty_form = LengthPenalty::wu; },
      "the length is (5 + length) / 6 (Wu et al. 2016)");
  command
      .add_option("--coverage-penalty", search.coverage_penalty,
                  "how much a source token that nothing looked at counts (Wu et al. 2016)")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  add_length_options(command, options);
  add_named_option<UnknownTokens>(
      command, "--unknown", search.unknown,
      "for what the model has no token for: forbid, a token that it has; copy, the source token "
      "that was attended to most; keep, <unk>. Else forbid, with model.copy copy");
  command.add_flag("--strict", options.model.strict,
                   "refuse a source that is longer than the model reads; otherwise it is cut");
  command
      .add_option(
          "--threads", options.model.threads,
          "threads that decode, sentences side by side and parts of a lone one, else one per core; "
          "answers do not depend on it")
      ->check(CLI::Range(1, 1024));
}

void add_decode_options(CLI::App& command, DecodeOptions& options) {
  command
      .add_option("model", options.models,
                  "model folder; several, of the same vocabularies, decode as one")
      ->required();
  add_placement_options(command, options.model.placement);
  add_named_option<WeightType>(
      command, "--weights", options.model.weights,
      "what answers are computed with: float32, or bfloat16 or int8, faster and a little off");
  add_search_options(command, options);
  command.add_flag("--keep-seen", options.search.keep_seen,
                   "of a model that ranks items: those of the source are ranked too");
}

void take_search_defaults(DecodeOptions& options, const Model& model) {
  const SearchOptions own = model.search_options();
  for (const DecodeOptions::TakeDefault& take : options.defaults) take(options.search, own);
}

void check_decode_options(const DecodeOptions& options, const Model& model) {
  if (options.search.keep_seen && !model.ranks())
    fail("--keep-seen: is of models that rank items; {} is of type {}", options.models[0],
         model.type());
}

}  // namespace attend
