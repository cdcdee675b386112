#include "attend/data/label_target.h"

#include <algorithm>
#include <set>

#include "attend/base/error.h"
#include "attend/base/trimmed.h"
#include "attend/text/units.h"

namespace attend {
namespace {

std::vector<std::string_view> parts_of(std::string_view target, std::string_view separator) {
  if (split_words(separator).empty()) return split_words(target);
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= target.size();) {
    const size_t end = std::min(target.find(separator, begin), target.size());
    parts.push_back(trimmed(target.substr(begin, end - begin)));
    begin = end + separator.size();
  }
  return parts;
}

}  // namespace

std::vector<std::string> split_labels(std::string_view target, std::string_view separator) {
  if (split_words(target).empty()) return {};
  const std::vector<std::string_view> labels = parts_of(target, separator);
  std::set<std::string_view> seen;
  for (const std::string_view label : labels) {
    if (label.empty())
      fail("target {} has an empty label; write {} only between labels", in_quotes(target),
           in_quotes(separator));
    if (!seen.insert(label).second)
      fail("target {} has label {} twice; name it once", in_quotes(target), in_quotes(label));
  }
  return {labels.begin(), labels.end()};
}

}  // namespace attend
