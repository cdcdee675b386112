#pragma once

#include <cstdint>
#include <string>

#include "attend/base/settings.h"
#include "attend/models/pair_model.h"

namespace attend {

// The format that config.toml is written in, which its key `format` tells. Files without that key
// are of format 1.
constexpr int64_t config_format = 1;

// Error where a file of settings, config.toml or another, is of a newer format. Before all other
// keys are read, for a newer format may have others.
void check_format(const TomlFile& file, const std::string& path);

// Reads the settings of such a file, which may tell its format. Errors as TomlFile::read.
void read_config(const TomlFile& file, Settings settings);

// The model folder: config.toml, source.vocab, target.vocab, byte-pair codes, the graph that a
// model of one reads, graph.safetensors, and weights.safetensors, which holds the network's weights
// once training has validated. config.toml is written last: where it is, the vocabularies are.
// Errors name the file.
void save_description(const PairModel& model, const std::string& folder);
PairModel load_pair_model(const std::string& folder);

// The same without weights: a new network.
PairModel load_description(const std::string& folder);

}  // namespace attend
