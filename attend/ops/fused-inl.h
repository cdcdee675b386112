#pragma once

#include "attend/ops/backend.h"

namespace attend {

// The CPU backend, always registered.
const Backend& cpu_backend();

// The backend for this problem; none if a tensor has a forward-mode derivative.
BackendChoice fused_backend(const Parts& parts, const LoweredSpec& spec);

// Fused attention by this backend; the context has the dtype of the queries.
AttentionResult fused_attention(const Backend& backend, const Parts& parts,
                                const c10::intrusive_ptr<LoweredSpec>& spec);

}  // namespace attend
