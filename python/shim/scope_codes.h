#pragma once

#include "python/shim/attention_call.h"

namespace attend::shim {

// The scope of the numbers of a call. Error if a code, a tensor or its shape is wrong.
kernels::Scope decoded_scope(const AttentionCall& call, const kernels::Shape& shape);

}  // namespace attend::shim
