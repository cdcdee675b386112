#pragma once

#include "attend/ops/scopes.h"

namespace attend {

// No key is that far; a reach that is unbounded still is from there.
inline constexpr int64_t farthest_offset = unbounded / 2;

// What a condition must satisfy whatever the sizes it is used with; Error otherwise.
void check_condition(const Window& window);
void check_condition(const KeyLengths& condition);
void check_condition(const Prefix& prefix);
void check_condition(const GlobalRows& global);
void check_condition(const Segments& segments);
void check_condition(const BlockLayout& blocks);
void check_condition(const DenseMask& condition);
void check_conditions(const Scope& scope);

}  // namespace attend
