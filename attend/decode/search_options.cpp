#include "attend/decode/search_options.h"

#include "attend/base/error.h"

namespace attend {

Settings Sampling::settings() {
  return {{"temperature", &temperature,
           "draw answers; below 1, probable answers become more frequent", 1e-3, 1e3},
          {"top_k", &top_k, "draw from the most probable k tokens", 1, 1e9},
          {"top_p", &top_p, "draw from the smallest set of tokens with this total probability",
           1e-6, 1}};
}

Settings SearchOptions::settings() {
  constexpr double max_tokens = 1e6;
  return {
      {"beam", &beam, "beam size: hypotheses kept per source; 1 is greedy search", 1, 1000},
      {"nbest", &nbest, "number of answers per source, at most the beam", 1, 1000},
      {"length_penalty", &length_penalty, "rank by log probability / length^this; 0: no penalty", 0,
       10},
      {"coverage_penalty", &coverage_penalty,
       "weight of the penalty for source tokens without attention (Wu et al. 2016)", 0, 10},
      {"minimum_length", &minimum_length, "minimum number of tokens of an answer", 0, max_tokens},
      {"maximum_length", &maximum_length,
       "maximum number of tokens of an answer, after a prefix; 0: 3 per token of the source plus "
       "10, or the minimum if that is more; spans: 15",
       0, max_tokens},
      {"from", &source_language,
       "language of the sources, for a model with languages; default: data.source_language of the "
       "model"},
      {"to", &target_language,
       "language of the answers, for a model with languages; default: data.target_language of the "
       "model"},
      {"keep_seen", &keep_seen, "rank items of the history, too (models that rank items)"},
      {"no_answer", &no_answer, "answer with nothing if that is most probable (models of spans)"}};
}

Settings SearchOptions::folder_settings() {
  const Settings all = settings();
  return {setting_of(all, "beam"), setting_of(all, "length_penalty"),
          setting_of(all, "minimum_length"), setting_of(all, "maximum_length"),
          setting_of(all, "no_answer")};
}

void SearchOptions::take_lengths(const SearchOptions& own, bool has_minimum, bool has_maximum) {
  if (!has_minimum) minimum_length = own.minimum_length;
  if (!has_maximum) maximum_length = own.maximum_length;
  if (maximum_length == 0 || minimum_length <= maximum_length) return;
  if (!has_minimum)
    minimum_length = maximum_length;
  else if (!has_maximum)
    maximum_length = minimum_length;
}

void SearchOptions::check() const {
  const auto from = [](const char* name, double value, double least) {
    if (!(value >= least)) fail("[search] {} must be at least {}, got {}", name, least, value);
  };
  if (beam < 1) fail("[search] beam must be at least 1, got {}", beam);
  if (nbest < 1) fail("[search] nbest must be at least 1, got {}", nbest);
  if (!sampling && nbest > beam)
    fail("[search] nbest must be at most the beam {}, got {}; raise beam", beam, nbest);
  from("length_penalty", length_penalty, 0);
  from("coverage_penalty", coverage_penalty, 0);
  from("minimum_length", static_cast<double>(minimum_length), 0);
  from("alternatives", static_cast<double>(alternatives), 0);
  if (maximum_length > 0 && minimum_length > maximum_length)
    fail("[search] minimum_length {} is over maximum_length {}; raise the one or lower the other",
         minimum_length, maximum_length);
  if (!sampling) return;
  if (alternatives > 0)
    fail("[search] drawn answers have no alternatives; leave out one of the two");
  if (!(sampling->temperature > 0))
    fail("[search] temperature must be above 0, got {}; a beam of 1 takes the most probable token",
         sampling->temperature);
  from("top_k", static_cast<double>(sampling->top_k), 0);
  if (!(sampling->top_p > 0 && sampling->top_p <= 1))
    fail("[search] top_p must be above 0 and at most 1, got {}", sampling->top_p);
}

}  // namespace attend
