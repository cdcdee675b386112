#pragma once

#include <torch/nn/module.h>

#include <string>

#include "attend/data/safetensors.h"

namespace attend {

// Writes the parameters of a module by name, crash-safely; a file that holds them already stays.
void save_weights(const torch::nn::Module& module, const std::string& path);

// The weights of a file, each under the name that its parameter has today: an older version called
// the tokens of an embedding symbols. Errors as read_safetensors.
TensorFile read_weights(const std::string& path);

// Error when the file lacks a parameter, holds one that the module does not have, or one of another
// shape or dtype. The module may be an outline: its values are not read.
void check_weights(const torch::nn::Module& module, const TensorFile& file,
                   const std::string& path);

// Copies the weights of a file into a module for which check_weights has accepted it.
void copy_weights(const TensorFile& file, torch::nn::Module& module);

}  // namespace attend
