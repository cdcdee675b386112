#pragma once

#include "attend/ops/scopes.h"

namespace attend {

// No key is that far; a reach that is unbounded still is from there.
inline constexpr int64_t farthest_offset = unbounded / 2;

// What a condition must satisfy whatever the sizes it is used with; Error otherwise.
void check_condition(const Window& window);
void check_condition(const KeyLengths& condition);
void check_condition(const QueryLengths& condition);
void check_condition(const Prefix& prefix);
void check_condition(const GlobalRows& global);
void check_condition(const Segments& segments);
void check_condition(const BlockLayout& blocks);
void check_condition(const DenseMask& condition);
void check_condition(const Around& condition);
void check_conditions(const Scope& scope);

// How many blocks so many positions touch, the first of which stands at `first` in its own.
inline int64_t blocks_of(int64_t block, int64_t first, int64_t count) {
  const int64_t end = first + count;
  return count == 0 ? 0 : end / block + (end % block != 0 ? 1 : 0);
}

// The rows offset ... offset + queries - 1 of that axis, counted from the back; all of it where it
// is missing or of one row. Error, in which `name` is what has no such row.
at::Tensor rows_from(const at::Tensor& x, int64_t axis, int64_t offset, int64_t queries,
                     const char* name);

}  // namespace attend
