#include "attend/decode/search_options.h"

#include "attend/base/error.h"

namespace attend {

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
