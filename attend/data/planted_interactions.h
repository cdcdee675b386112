#pragma once

#include <cstdint>
#include <string>

namespace attend {

// Users who take items by a Markov chain: ten items, drawn once for each item, follow it with a
// probability of 0.09 each; otherwise any item follows, evenly.
struct PlantedInteractions {
  int64_t users = 2000;
  int64_t items = 100;  // 20 or more
  int64_t length = 15;  // items of each user, 3 or more
  uint64_t seed = 1;

  // The share of items that nobody could find more often among the ten that are most probable.
  double best_hit() const;
};

struct PlantedSummary {
  int64_t lines = 0;
  double last_hit = 0;  // the share of the users' last items that are one of the ten
};

// Writes lines of user TAB item TAB time, those of the users mixed, in the order of time. Error on
// sizes out of range and where the file cannot be written.
PlantedSummary write_planted(const std::string& path, const PlantedInteractions& planted);

}  // namespace attend
