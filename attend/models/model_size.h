#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attend/models/pair_model.h"

namespace attend {

// The model's network without storage, of any size at no cost: its parameters have their names,
// shapes and dtypes, and no values.
std::shared_ptr<PairNetwork> outline(const PairModel& model);

// Bytes of the parameters of the model's network. Nothing is allocated for them; model.network may
// be null.
int64_t parameter_bytes(const PairModel& model);

// "model.bias = 'grid:65536x65536' asks for 549.7 GB of them": the setting whose default, put in
// its place, would shrink the parameters most. Where no default shrinks them, the vocabularies are
// large, and the text says that.
std::string largest_part(const PairModel& model);

// Error if so many copies of the parameters, in float32, do not fit memory_limit(). `use` says in
// the message what needs them.
void check_copies(const PairModel& model, double copies, const std::string& use);

// Error where the parameters, and what training by so many replicas holds for each of them, do not
// fit memory_limit(), which so many processes share. Activations, which depend on the data, are not
// counted.
void check_memory(const PairModel& model, int64_t replicas = 1, int64_t processes = 1);

}  // namespace attend
