#include "attend/data/number_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/text/units.h"

namespace attend {
namespace {

double element_number(std::string_view text, std::string_view element) {
  const auto number = parse_number<double>(text);
  if (!number || !std::isfinite(*number))
    fail(
        "element {} of a set: {} is not a finite number; separate elements by blanks and numbers "
        "of an element by commas, as 0.1,0.2 3,4",
        in_quotes(element), in_quotes(text));
  return *number + 0.0;  // turns -0 into 0
}

std::vector<double> element_numbers(std::string_view element) {
  std::vector<double> numbers;
  for (size_t begin = 0; begin <= element.size();) {
    const size_t end = std::min(element.find(',', begin), element.size());
    numbers.push_back(element_number(element.substr(begin, end - begin), element));
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

NumberSet parse_number_set(std::string_view text) {
  struct Element {
    std::vector<double> numbers;
    std::string_view written;
  };
  if (text.find('\t') != std::string_view::npos)
    fail("a set has a TAB; separate elements by blanks, and give no target");
  std::vector<Element> elements;
  for (const std::string_view word : split_words(text)) {
    elements.push_back({element_numbers(word), word});
    const Element& first = elements[0];
    if (elements.back().numbers.size() != first.numbers.size())
      fail("element {} of a set has {} numbers, and {} before it {}; give all the same number: {}",
           in_quotes(word), elements.back().numbers.size(), in_quotes(first.written),
           first.numbers.size(), set_separators);
  }
  if (elements.empty()) fail("a set is empty; write elements separated by blanks, as 3 17 42");
  std::stable_sort(elements.begin(), elements.end(),
                   [](const Element& a, const Element& b) { return a.numbers < b.numbers; });
  NumberSet set;
  set.depth = std::ssize(elements[0].numbers);
  for (const Element& element : elements) {
    set.elements.emplace_back(element.written);
    set.numbers.insert(set.numbers.end(), element.numbers.begin(), element.numbers.end());
  }
  return set;
}

}  // namespace attend
