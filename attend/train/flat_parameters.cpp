#include "attend/train/flat_parameters.h"

#include <algorithm>
#include <iterator>

namespace attend {

using at::Tensor;

template <class F>
void FlatParameters::for_each_part(const ModulePtr& module, const std::vector<Tensor>& vectors,
                                   F f) const {
  auto parameters = module->parameters();
  TORCH_INTERNAL_ASSERT(parameters.size() == slots_.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [vector, begin, size] = slots_[i];
    f(parameters[i], vectors[vector].narrow(0, begin, size).view(parameters[i].sizes()));
  }
}

FlatParameters::FlatParameters(const ModulePtr& module) {
  torch::NoGradGuard no_gradient;
  std::vector<std::vector<Tensor>> parts;  // per device
  std::vector<at::Device> devices;
  std::vector<int64_t> sizes;
  for (const Tensor& parameter : module->parameters()) {
    const auto found = std::find(devices.begin(), devices.end(), parameter.device());
    const auto vector = static_cast<size_t>(found - devices.begin());
    if (found == devices.end()) {
      devices.push_back(parameter.device());
      parts.emplace_back();
      sizes.push_back(0);
    }
    slots_.push_back({vector, sizes[vector], parameter.numel()});
    parts[vector].push_back(parameter.reshape({-1}));
    sizes[vector] += parameter.numel();
  }
  for (const auto& device_parts : parts) values_.push_back(at::cat(device_parts));
}

void FlatParameters::share_with(const ModulePtr& module) const {
  std::vector<Tensor> values;
  values.reserve(values_.size());
  for (const Tensor& vector : values_) values.push_back(vector.detach());
  for_each_part(module, values,
                [](Tensor& parameter, const Tensor& part) { parameter.set_data(part); });
}

std::vector<Tensor> FlatParameters::give_gradients(const ModulePtr& module) const {
  std::vector<Tensor> gradients;
  gradients.reserve(values_.size());
  for (const Tensor& vector : values_) gradients.push_back(at::zeros_like(vector));
  for_each_part(module, gradients,
                [](Tensor& parameter, const Tensor& part) { parameter.mutable_grad() = part; });
  return gradients;
}

Tensor FlatParameters::gathered(const std::vector<Tensor>& vectors) const {
  if (vectors.size() == 1) return vectors[0];
  std::vector<Tensor> parts;
  parts.reserve(slots_.size());
  for (const auto& [vector, begin, size] : slots_)
    parts.push_back(vectors[vector].narrow(0, begin, size).cpu());
  return at::cat(parts);
}

void FlatParameters::scatter(const Tensor& all, const std::vector<Tensor>& vectors) const {
  torch::NoGradGuard no_gradient;
  int64_t done = 0;
  for (const auto& [vector, begin, size] : slots_) {
    vectors[vector].narrow(0, begin, size).copy_(all.narrow(0, done, size));
    done += size;
  }
}

}  // namespace attend
