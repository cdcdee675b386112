#include "attend/models/parameters_file.h"

#include <filesystem>
#include <iterator>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {

void save_weights(const torch::nn::Module& module, const std::string& path) {
  TensorFile file;
  for (const auto& item : module.named_parameters())
    file.tensors.emplace(item.key(), item.value().detach());
  const std::string bytes = format_safetensors(file);
  std::error_code absent;
  const bool alike = std::filesystem::file_size(path, absent) == bytes.size() && !absent;
  if (!alike || read_file(path, std::ssize(bytes)) != bytes) write_file(path, bytes);
}

void check_weights(const torch::nn::Module& module, const TensorFile& file,
                   const std::string& path) {
  const auto parameters = module.named_parameters();
  for (const auto& [name, tensor] : file.tensors) {
    if (!parameters.contains(name))
      fail("{}: tensor {} belongs to no parameter of the model that config.toml describes", path,
           in_quotes(name));
  }
  for (const auto& item : parameters) {
    const auto found = file.tensors.find(item.key());
    if (found == file.tensors.end())
      fail("{}: tensor {} is missing; config.toml and vocabularies describe another model", path,
           item.key());
    const at::Tensor& stored = found->second;
    if (stored.sizes() != item.value().sizes() ||
        stored.scalar_type() != item.value().scalar_type())
      fail("{}: tensor {} has shape [{}]; config.toml and vocabularies describe [{}]", path,
           item.key(), fmt::join(stored.sizes(), ", "), fmt::join(item.value().sizes(), ", "));
  }
}

void copy_weights(const TensorFile& file, torch::nn::Module& module) {
  torch::NoGradGuard no_gradient;
  for (auto& item : module.named_parameters()) item.value().copy_(file.tensors.at(item.key()));
}

}  // namespace attend
