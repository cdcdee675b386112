#pragma once

#include <string>

#include "attend/models/pair_model.h"

namespace attend {

// The model folder: config.toml, source.vocab, target.vocab, byte-pair codes and
// weights.safetensors, which holds the network's weights once training has validated. config.toml
// is written last: where it is, the vocabularies are. Errors name the file.
void save_description(const PairModel& model, const std::string& folder);
PairModel load_pair_model(const std::string& folder);

// The same without weights: a new network.
PairModel load_description(const std::string& folder);

}  // namespace attend
