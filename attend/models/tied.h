#pragma once

#include "attend/base/enum_names.h"

namespace attend {

// Which embeddings are the output's matrix too: none, the target's, or the source's as well.
enum class Tied { none, target, all };
inline EnumNames names_of(Tied) { return {"none", "target", "all"}; }

}  // namespace attend
