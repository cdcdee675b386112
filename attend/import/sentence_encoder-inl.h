#pragma once

#include <string>

#include "attend/models/embedder.h"

namespace attend::internal {

// What modules.json and the files that it names say of the vector of a text
// (sentence-transformers); nothing where there is none. Error on parts and ways to pool that are
// not read, by their names.
void read_sentence_encoder(const std::string& folder, EmbedderConfig& config);

}  // namespace attend::internal
