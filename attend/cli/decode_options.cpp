#include "attend/cli/decode_options.h"

#include <map>

#include "attend/base/error.h"
#include "attend/steps/weight_type.h"

namespace attend {

void add_column_options(CLI::App& command, std::string& source, std::string& target) {
  command.add_option("--source-column", source,
                     "of a CSV file with a header: the name of the sources' column");
  command.add_option("--target-column", target, "and of the targets'");
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
                  "tokens of an answer at most; else 3 for a source token, and 10, or "
                  "--minimum-length where that is more")
      ->check(CLI::Range(1, 1000000));
  const std::map<std::string, UnknownTokens> unknown = {{"forbid", UnknownTokens::forbid},
                                                        {"copy", UnknownTokens::copy},
                                                        {"keep", UnknownTokens::keep}};
  command
      .add_option_function<std::string>(
          "--unknown",
          [&search, unknown](const std::string& name) { search.unknown = unknown.at(name); },
          "for what the model has no token for: forbid, a token that it has; copy, the source "
          "token "
          "that was attended to most; keep, <unk>. Else forbid, with model.copy copy")
      ->check(CLI::IsMember({"forbid", "copy", "keep"}));
  command.add_flag("--strict", options.model.strict,
                   "refuse a source that is longer than the model reads; otherwise it is cut");
  command
      .add_option("--threads", options.model.threads,
                  "sentences decoded in parallel, else one a core; answers do not depend on it")
      ->check(CLI::Range(1, 1024));
}

void add_decode_options(CLI::App& command, DecodeOptions& options) {
  command
      .add_option("model", options.models,
                  "model folder; several, of the same vocabularies, decode as one")
      ->required();
  command
      .add_option("--device", options.model.device, "where the model computes: cpu, cuda or cuda:1")
      ->capture_default_str();
  command.add_option("--place", options.model.place, place_help);
  command
      .add_option_function<std::string>(
          "--weights",
          [&options](const std::string& name) { options.model.weights = parse_weight_type(name); },
          "what answers are computed with: float32, or bfloat16 or int8, faster and a little off")
      ->default_str("float32");
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
