#pragma once

#include "attend/base/enum_names.h"
#include "attend/kernels/cached_attention.h"
#include "attend/kernels/packed_matrix.h"

namespace attend {

namespace kernels {
inline EnumNames names_of(WeightType) { return {"float32", "bfloat16", "int8"}; }
}  // namespace kernels

using kernels::WeightType;

// Type of cached keys and values for a model with these weights: bfloat16 if the weights are
// rounded, too.
inline kernels::CacheType cache_type(WeightType weights) {
  return weights == WeightType::float32 ? kernels::CacheType::float32
                                        : kernels::CacheType::bfloat16;
}

}  // namespace attend
