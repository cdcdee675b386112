#include "bench/training_data.h"

#include <algorithm>
#include <random>

#include "attend/text/vocabulary.h"

namespace attend::bench {

std::vector<EncodedPair> sentences(int64_t tokens) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> length(13.5, 4.5), difference(0, 2);
  std::uniform_int_distribution<int64_t> token(Vocabulary::unknown + 1, tokens - 1);
  const auto draw = [&](double count) {
    std::vector<int64_t> ids(static_cast<size_t>(std::clamp(count, 4.0, 45.0)));
    for (int64_t& id : ids) id = token(random);
    return ids;
  };
  std::vector<EncodedPair> pairs(20000);
  for (EncodedPair& pair : pairs) {
    const double source = length(random);
    pair.source = draw(source);
    pair.target = draw(source + difference(random));
  }
  return pairs;
}

}  // namespace attend::bench
