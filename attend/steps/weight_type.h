#pragma once

#include "attend/base/enum_names.h"
#include "attend/kernels/cached_attention.h"
#include "attend/kernels/packed_matrix.h"

namespace attend {

namespace kernels {
inline EnumNames names_of(WeightType) { return {"float32", "bfloat16", "int8"}; }
}  // namespace kernels

using kernels::WeightType;

// The type in which a model with such weights keeps the keys and values of its steps: bfloat16
// where weights are rounded, too.
inline kernels::CacheType cache_type(WeightType weights) {
  return weights == WeightType::float32 ? kernels::CacheType::float32
                                        : kernels::CacheType::bfloat16;
}

}  // namespace attend
