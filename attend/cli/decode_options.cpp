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

void add_search_options(CLI::App& command, DecodeOptions& options) {
  SearchOptions& search = options.search;
  command.add_option("--beam", search.beam, "hypotheses kept; 1 is greedy search")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option("--length-penalty", search.length_penalty,
                  "rank by log probability / length^this; 0 is none")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command.add_flag_callback(
      "--wu-length-penalty", [&search] { search.length_penalty_form = LengthPenalty::wu; },
      "the length is (5 + length) / 6 (Wu et al. 2016)");
  command
      .add_option("--coverage-penalty", search.coverage_penalty,
                  "how much a source token that nothing looked at counts (Wu et al. 2016)")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command.add_option("--minimum-length", search.minimum_length, "tokens of an answer at least")
      ->check(CLI::Range(0, 1000000));
  command
      .add_option("--maximum-length", search.maximum_length,
                  "tokens of an answer at most, behind a prefix; else 3 for a source token, and "
                  "10, or --minimum-length where that is more")
      ->check(CLI::Range(1, 1000000));
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

void check_decode_options(const DecodeOptions& options, const Model& model) {
  if (options.search.keep_seen && !model.ranks())
    fail("--keep-seen: is of models that rank items; {} is of type {}", options.models[0],
         model.type());
}

}  // namespace attend
