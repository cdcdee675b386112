#pragma once

#include <torch/torch.h>

#include <string>

namespace attend {

// Writes the parameters of a module by name, crash-safely.
void save_weights(const torch::nn::Module& module, const std::string& path);

// Reads them back in place. Error when the file lacks a parameter, holds one that the module does
// not have, or one of another shape or dtype.
void load_weights(torch::nn::Module& module, const std::string& path);

}  // namespace attend
