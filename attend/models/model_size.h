#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attend/models/pair_model.h"

namespace attend {

// The model's network without storage, of any size at no cost. Its parameters have names, shapes
// and dtypes, but no values.
std::shared_ptr<PairNetwork> outline(const PairModel& model);

// Bytes of the parameters of the model's network, computed without allocating them; model.network
// may be null.
int64_t parameter_bytes(const PairModel& model);

// The setting that contributes most to the number of parameters, for example "model.bias =
// 'grid:65536x65536' asks for 549.7 GB of them". It is the setting with the largest reduction when
// reset to its default. If no default reduces the parameters, the text names the vocabularies.
std::string largest_part(const PairModel& model);

// Error if `copies` copies of the parameters in float32 exceed memory_limit(). The message names
// `use` as the reason.
void check_copies(const PairModel& model, double copies, const std::string& use);

// Error if the parameters and the training state of `replicas` replicas exceed memory_limit(),
// which `processes` processes share. Activations are not counted, because they depend on the data.
void check_memory(const PairModel& model, int64_t replicas = 1, int64_t processes = 1);

}  // namespace attend
