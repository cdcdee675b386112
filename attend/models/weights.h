#pragma once

#include <torch/torch.h>

#include <string>

namespace attend {

// Writes the parameters of a module by name, crash-safely; a file that holds them already stays.
void save_weights(const torch::nn::Module& module, const std::string& path);

// Reads them back in place. Error when the file lacks a parameter, holds one that the module does
// not have, or one of another shape or dtype.
void load_weights(torch::nn::Module& module, const std::string& path);

// Copies those of the file that have the name, shape and dtype of a parameter of the module;
// returns how many. Errors as read_safetensors.
int64_t load_shared_weights(torch::nn::Module& module, const std::string& path);

}  // namespace attend
