#pragma once

#include <cstdint>
#include <string>

#include "attend/base/settings.h"
#include "attend/models/pair_model.h"

namespace attend {

// Format number of config.toml, stored in its key `format`. Files without that key have format 1.
constexpr int64_t config_format = 1;

// Error if a file of settings, such as config.toml, has a newer format. Call it before reading
// other keys, because a newer format may have other keys.
void check_format(const TomlFile& file, const std::string& path);

// Reads settings from such a file; its key `format` is optional. Errors as TomlFile::read.
void read_config(const TomlFile& file, Settings settings);

// The model folder: config.toml, source.vocab, target.vocab, byte-pair codes, graph.safetensors for
// a model of a graph, and, after the first validation of a training, weights.safetensors.
// config.toml is written last, so if it exists, the vocabularies exist. Errors name the file.
void save_description(const PairModel& model, const std::string& folder);
PairModel load_pair_model(const std::string& folder);

// The same with a new network instead of stored weights.
PairModel load_description(const std::string& folder);

}  // namespace attend
