#pragma once

#include <cstdint>
#include <string>

namespace attend {

// The items of each user follow a Markov chain. Ten items, drawn once per item, follow it with
// probability 0.09 each; otherwise the next item is drawn uniformly.
struct PlantedInteractions {
  int64_t users = 2000;
  int64_t items = 100;  // at least 20
  int64_t length = 15;  // items per user, at least 3
  uint64_t seed = 1;

  // Highest expected share of next items among ten predicted ones.
  double best_hit() const;
};

struct PlantedSummary {
  int64_t lines = 0;
  double last_hit = 0;  // share of the users' last items that are among the ten
};

// Writes lines of user TAB item TAB time, with users interleaved, in order of time. Error if sizes
// are out of range or the file cannot be written.
PlantedSummary write_planted(const std::string& path, const PlantedInteractions& planted);

}  // namespace attend
