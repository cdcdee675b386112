#pragma once

#include <torch/nn/module.h>

#include <string>

#include "attend/files/safetensors.h"

namespace attend {

// Writes the parameters of a module by name, crash-safely. A file that already holds them is left
// unchanged.
void save_weights(const torch::nn::Module& module, const std::string& path);

// Error if the file lacks a parameter, holds an unknown one, or one with another shape or dtype.
// Values are not read, so the module may be an outline.
void check_weights(const torch::nn::Module& module, const TensorFile& file,
                   const std::string& path);

// Copies the weights of a file into a module. Requires that check_weights accepted them.
void copy_weights(const TensorFile& file, torch::nn::Module& module);

}  // namespace attend
