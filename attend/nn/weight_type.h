#pragma once

#include <string>

#include "attend/kernels/packed_matrix.h"

namespace attend {

using kernels::WeightType;

// "float32" or "int8"; Error otherwise.
WeightType parse_weight_type(const std::string& name);

}  // namespace attend
