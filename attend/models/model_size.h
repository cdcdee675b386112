#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attend/models/pair_model.h"

namespace attend {

// The model's network without storage, of any size at no cost: its parameters have their names,
// shapes and dtypes, and no values.
std::shared_ptr<PairNetwork> outline(const PairModel& model);

// Bytes of the parameters of the model's network, which need not be there; nothing is allocated for
// them.
int64_t parameter_bytes(const PairModel& model);

// "model.bias = 'grid:65536x65536' asks for 549.7 GB of them": the setting without which, its
// default in its place, the parameters would shrink most. Where none does, the vocabularies are
// large, and it says that.
std::string largest_part(const PairModel& model);

// Error where the parameters, and what training holds for each of them, do not fit memory_limit().
void check_memory(const PairModel& model);

}  // namespace attend
