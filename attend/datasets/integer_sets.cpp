#include "attend/datasets/integer_sets.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/random.h"
#include "attend/datasets/new_files.h"

namespace attend {

void write_integer_sets(const std::string& path, const IntegerSets& sets) {
  if (sets.count < 1 || sets.maximum < 1 || sets.largest < 1)
    fail("[integer sets] {} sets of up to {} integers up to {}; each of these is 1 or more",
         sets.count, sets.maximum, sets.largest);
  constexpr int64_t max_integers = 100'000'000;
  if (sets.count > max_integers / sets.maximum)
    fail("[integer sets] {} sets of up to {} integers are over {}; ask for fewer", sets.count,
         sets.maximum, max_integers);
  std::mt19937_64 random = internal::generator(static_cast<uint64_t>(sets.seed), 0);
  const auto draw = [&](int64_t largest) {
    return 1 + static_cast<int64_t>(internal::draw_below(static_cast<uint64_t>(largest), random));
  };
  std::string text;
  for (int64_t i = 0; i < sets.count; ++i) {
    const int64_t size = draw(sets.maximum);
    int64_t maximum = 0;
    for (int64_t j = 0; j < size; ++j) {
      const int64_t integer = draw(sets.largest);
      maximum = std::max(maximum, integer);
      text += fmt::format("{}{}", j > 0 ? " " : "", integer);
    }
    text += fmt::format("\t{}\n", maximum);
  }
  write_new_files({{path, text}});
}

}  // namespace attend
