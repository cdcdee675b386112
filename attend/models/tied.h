#pragma once

#include "attend/base/enum_names.h"

namespace attend {

// Which embeddings share the output matrix: none, only the target's, or also the source's.
enum class Tied { none, target, all };
inline EnumNames names_of(Tied) { return {"none", "target", "all"}; }

}  // namespace attend
