#include "attend/models/parameters_file.h"

#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {

void save_weights(const torch::nn::Module& module, const std::string& path) {
  TensorFile file;
  for (const auto& item : module.named_parameters())
    file.tensors.emplace(item.key(), item.value().detach());
  if (std::filesystem::exists(path) && read_file(path) == format_safetensors(file)) return;
  write_safetensors(path, file);
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

int64_t load_shared_weights(torch::nn::Module& module, const std::string& path) {
  const TensorFile file = read_safetensors(path);
  torch::NoGradGuard no_gradient;
  int64_t count = 0;
  for (auto& item : module.named_parameters()) {
    const auto found = file.tensors.find(item.key());
    if (found == file.tensors.end() || found->second.sizes() != item.value().sizes() ||
        found->second.scalar_type() != item.value().scalar_type())
      continue;
    item.value().copy_(found->second);
    ++count;
  }
  return count;
}

}  // namespace attend
