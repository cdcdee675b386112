#include <algorithm>

#include "attend/tokenizers/trie-inl.h"

namespace attend::internal {
namespace {

// The sorted entries with strings that begin with the path to a node.
struct Through {
  size_t begin, end;
};

}  // namespace

Trie::Trie(std::vector<Entry> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  std::vector<Through> level{{0, entries.size()}};
  labels_.push_back('\0');
  values_.push_back(none);
  for (size_t depth = 0; !level.empty(); ++depth) {
    std::vector<Through> next;
    for (auto [begin, end] : level) {
      first_child_.push_back(static_cast<int32_t>(values_.size()));
      // The string that ends at this node comes first.
      while (begin < end && entries[begin].first.size() == depth) ++begin;
      while (begin < end) {
        const char label = entries[begin].first[depth];
        size_t last = begin;
        while (last < end && entries[last].first[depth] == label) ++last;
        labels_.push_back(label);
        const bool ends = entries[begin].first.size() == depth + 1;
        values_.push_back(ends ? entries[begin].second : none);
        next.push_back({begin, last});
        begin = last;
      }
    }
    level = std::move(next);
  }
  first_child_.push_back(static_cast<int32_t>(values_.size()));
  first_nodes_.fill(none);
  for (int32_t node = first_child_[root]; node < first_child_[root + 1]; ++node)
    first_nodes_[static_cast<unsigned char>(labels_[static_cast<size_t>(node)])] = node;
}

}  // namespace attend::internal
