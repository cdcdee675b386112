#include <algorithm>
#include <numeric>

#include "attend/base/error.h"
#include "attend/kernels/check.h"
#include "attend/kernels/scope.h"

namespace attend::kernels {
namespace {

// Number of separate lists over batch entries, and over heads.
int64_t list_batch(const EdgeLists& lists, const Shape& s) {
  return lists.batch_stride == 0 ? 1 : s.batch;
}

int64_t list_heads(const EdgeLists& lists, const Shape& s) {
  return lists.head_stride == 0 ? 1 : s.heads;
}

// Calls work(offsets, list) for each list.
template <class Work>
void each_list(const EdgeLists& lists, const Shape& s, const Work& work) {
  if (s.batch * s.heads == 0) return;
  const int64_t heads = list_heads(lists, s);
  for (int64_t b = 0; b < list_batch(lists, s); ++b) {
    for (int64_t h = 0; h < heads; ++h) work(lists.row({b, h, 0}), b * heads + h);
  }
}

void check_keys(const EdgeLists& lists, int64_t query, int64_t begin, int64_t end, int64_t keys) {
  int64_t before = -1;
  for (int64_t n = begin; n < end; ++n) {
    const int64_t key = lists.keys[n];
    if (key < 0 || key >= keys)
      fail("[attention] edge {} leads query {} to key {}; there are {} keys", n, query, key, keys);
    if (key <= before)
      fail(
          "[attention] edge {} leads query {} to key {} after key {}; the keys of a query must "
          "ascend",
          n, query, key, before);
    before = key;
  }
}

}  // namespace

KeyRange EdgeLists::hull(const Row& seeing, int64_t) const {
  const int64_t* ends = row(seeing);
  return ends[0] == ends[1] ? KeyRange{0, 0} : KeyRange{keys[ends[0]], keys[ends[1] - 1] + 1};
}

bool EdgeLists::allows(const Row& seeing, int64_t key) const {
  const int64_t* ends = row(seeing);
  return std::binary_search(keys + ends[0], keys + ends[1], key);
}

void EdgeLists::check(const Shape& shape) const {
  if (edges < 0) fail("[attention] edges number {}; they must not be negative", edges);
  check_array("the offsets of the edges", offsets, shape.batch * shape.heads);
  check_array("the keys of the edges", keys, edges);
  const int64_t lists = list_batch(*this, shape) * list_heads(*this, shape);
  if (by_key != nullptr && by_key->offsets.size() != static_cast<size_t>(lists * (shape.keys + 1)))
    fail("[attention] the edges by key are of {} offsets; {} lists of {} keys have {}",
         by_key->offsets.size(), lists, shape.keys, lists * (shape.keys + 1));
  each_list(*this, shape, [&](const int64_t* list, int64_t) {
    for (int64_t i = 0; i < shape.queries; ++i) {
      if (list[i] < 0 || list[i] > list[i + 1] || list[i + 1] > edges)
        fail(
            "[attention] the edges of query {} are {} to {} of {}; offsets must ascend from 0 to "
            "the number of edges",
            i, list[i], list[i + 1], edges);
      check_keys(*this, i, list[i], list[i + 1], shape.keys);
    }
  });
}

int64_t EdgeLists::longest(const Shape& shape) const {
  int64_t maximum = 0;
  each_list(*this, shape, [&](const int64_t* list, int64_t) {
    maximum = std::max(maximum, list[shape.queries] - list[0]);
  });
  return maximum;
}

EdgesByKey sorted_by_key(const EdgeLists& lists, const Shape& shape) {
  EdgesByKey sorted;
  sorted.heads = list_heads(lists, shape);
  int64_t count = 0, begin = 0;
  each_list(lists, shape,
            [&](const int64_t* list, int64_t) { count += list[shape.queries] - list[0]; });
  sorted.offsets.resize(list_batch(lists, shape) * sorted.heads * (shape.keys + 1));
  sorted.queries.resize(count);
  sorted.edges.resize(count);
  std::vector<int64_t> next(shape.keys + 1);
  each_list(lists, shape, [&](const int64_t* list, int64_t number) {
    // Counts the edges of each key, then computes the position of its first edge.
    std::fill(next.begin(), next.end(), 0);
    for (int64_t n = list[0]; n < list[shape.queries]; ++n) ++next[lists.keys[n] + 1];
    next[0] = begin;
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::copy(next.begin(), next.end(), sorted.offsets.begin() + number * (shape.keys + 1));
    for (int64_t i = 0; i < shape.queries; ++i) {
      for (int64_t n = list[i]; n < list[i + 1]; ++n) {
        const int64_t place = next[lists.keys[n]]++;
        sorted.queries[place] = i;
        sorted.edges[place] = n;
      }
    }
    begin += list[shape.queries] - list[0];
  });
  return sorted;
}

std::optional<EdgeScope> edge_scope(const Scope& scope) {
  if (scope.any_of.size() != 1) return std::nullopt;
  std::optional<EdgeScope> found;
  Clause rest;
  for (const Condition& condition : scope.any_of[0]) {
    const auto* lists = std::get_if<EdgeLists>(&condition);
    if (lists == nullptr) {
      rest.push_back(condition);
    } else if (found) {
      return std::nullopt;
    } else {
      found = EdgeScope{*lists, {}};
    }
  }
  if (found) found->rest = std::move(rest);
  return found;
}

}  // namespace attend::kernels
