#pragma once

#include <string>

#include "attend/kernels/cached_attention.h"
#include "attend/kernels/packed_matrix.h"

namespace attend {

using kernels::WeightType;

// "float32", "bfloat16" or "int8"; Error otherwise.
WeightType parse_weight_type(const std::string& name);

// The type in which a model with such weights keeps the keys and values of its steps: bfloat16
// where weights are rounded, too.
inline kernels::CacheType cache_type(WeightType weights) {
  return weights == WeightType::float32 ? kernels::CacheType::float32
                                        : kernels::CacheType::bfloat16;
}

}  // namespace attend
