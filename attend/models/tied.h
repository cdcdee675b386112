#pragma once

#include "attend/base/enum_names.h"

namespace attend {

// Which matrices are one: none; target: the output and the target's embedding; all: also the
// source's embedding; inputs: the two embeddings, and not the output.
enum class Tied { none, target, all, inputs };
inline EnumNames names_of(Tied) { return {"none", "target", "all", "inputs"}; }

constexpr bool shares_inputs(Tied tied) { return tied == Tied::all || tied == Tied::inputs; }
constexpr bool shares_output(Tied tied) { return tied == Tied::all || tied == Tied::target; }

}  // namespace attend
