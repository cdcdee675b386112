#include "attend/train/checkpoint.h"

#include <charconv>

#include "attend/base/error.h"
#include "attend/data/safetensors.h"

namespace attend {
namespace {

// Calls f(name, field) for each field, so that reading and writing cannot drift apart.
template <class C, class F>
void for_each_tensor(C& checkpoint, F f) {
  f("weights", checkpoint.weights);
  f("average", checkpoint.average);
  f("first_moment", checkpoint.first_moment);
  f("second_moment", checkpoint.second_moment);
}

template <class C, class F>
void for_each_number(C& checkpoint, F f) {
  f("step", checkpoint.step);
  f("updates", checkpoint.updates);
  f("epoch", checkpoint.epoch);
  f("batches", checkpoint.batches);
  f("loss_sum", checkpoint.loss_sum);
  f("loss_symbols", checkpoint.loss_symbols);
  f("best_metric", checkpoint.best_metric);
  f("best_step", checkpoint.best_step);
  f("stale_validations", checkpoint.stale_validations);
  f("rate_factor", checkpoint.rate_factor);
  f("rollbacks", checkpoint.rollbacks);
  f("seconds", checkpoint.seconds);
  f("data_fingerprint", checkpoint.data_fingerprint);
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  TensorFile file;
  for_each_tensor(checkpoint, [&](const char* name, const at::Tensor& tensor) {
    file.tensors.emplace(name, tensor);
  });
  // fmt writes the shortest decimal that reads back as the same double.
  for_each_number(checkpoint, [&](const char* name, const auto& number) {
    file.metadata.emplace(name, fmt::format("{}", number));
  });
  write_safetensors(path, file);
}

Checkpoint read_checkpoint(const std::string& path) {
  const TensorFile file = read_safetensors(path);
  Checkpoint checkpoint;
  for_each_tensor(checkpoint, [&](const char* name, at::Tensor& tensor) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end() || found->second.dim() != 1 ||
        found->second.scalar_type() != at::kFloat)
      fail("{}: no tensor {} of one axis of float; this is no checkpoint", path, name);
    tensor = found->second;
  });
  for_each_number(checkpoint, [&](const char* name, auto& number) {
    const auto found = file.metadata.find(name);
    if (found == file.metadata.end()) fail("{}: no field {}; this is no checkpoint", path, name);
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      fail("{}: field {} is no number", path, name);
  });
  return checkpoint;
}

}  // namespace attend
