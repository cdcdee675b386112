#pragma once

#include "attend/ops/backend.h"

namespace attend {

// That of the kernels of attend/kernels, which is always there.
const Backend& cpu_backend();

// The backend that takes this, forward-mode derivatives aside.
BackendChoice fused_backend(const Parts& parts, const LoweredSpec& spec);

// Tile by tile, by that backend; context in the dtype of the queries.
AttentionResult fused_attention(const Backend& backend, const Parts& parts,
                                const c10::intrusive_ptr<LoweredSpec>& spec);

}  // namespace attend
