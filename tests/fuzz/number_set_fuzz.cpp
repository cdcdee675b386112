#include <algorithm>
#include <cmath>

#include "attend/data/number_set.h"
#include "tests/fuzz/fuzz.h"

// A line with a set.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  const std::string text(fuzz::text(data, size));
  const auto check = [&](const std::string& beginning) {
    return fuzz::accept_errors(
        [&] {
          const NumberSet set = parse_number_set(text);
          fuzz::expect(set.depth > 0 && !set.elements.empty());
          fuzz::expect(std::ssize(set.numbers) == set.depth * std::ssize(set.elements));
          for (const double number : set.numbers) fuzz::expect(std::isfinite(number));
          for (int64_t i = 1; i < std::ssize(set.elements); ++i) {
            const auto element = set.numbers.begin() + i * set.depth;
            fuzz::expect(!std::lexicographical_compare(element, element + set.depth,
                                                       element - set.depth, element));
          }
          std::string backwards;
          for (auto each = set.elements.rbegin(); each != set.elements.rend(); ++each)
            backwards += *each + ' ';
          fuzz::expect(parse_number_set(backwards).numbers == set.numbers);
        },
        beginning);
  };
  if (text.find('\t') != std::string::npos) return check("a set has a TAB");
  return check(text.find_first_not_of(" \n\v\f\r") == std::string::npos ? "a set is empty"
                                                                        : "element ");
}
