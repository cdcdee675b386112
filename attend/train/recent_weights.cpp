#include "attend/train/recent_weights.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "attend/base/error.h"
#include "attend/files/safetensors.h"
#include "attend/models/parameters_file.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_start = "weights-";
constexpr std::string_view name_end = ".safetensors";

std::string path_of(const std::string& folder, int64_t step) {
  return fmt::format("{}/{}{}{}", folder, name_start, step, name_end);
}

void add_to(TensorFile& sum, const TensorFile& file, const std::string& path) {
  if (file.tensors.size() != sum.tensors.size())
    fail("{}: has {} tensors, the weights before it {}", path, file.tensors.size(),
         sum.tensors.size());
  for (auto& [name, total] : sum.tensors) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end() || found->second.sizes() != total.sizes())
      fail("{}: has no tensor {} of the shape of the weights before it", path, name);
    total += found->second;
  }
}

}  // namespace

void RecentWeights::add(const torch::nn::Module& module, int64_t step) const {
  if (count_ == 0) return;
  save_weights(module, path_of(folder_, step));
  const std::vector<int64_t> steps = kept_steps(folder_);
  for (size_t i = 0; i + static_cast<size_t>(count_) < steps.size(); ++i)
    fs::remove(path_of(folder_, steps[i]));
}

void RecentWeights::drop_after(int64_t step) const {
  for (const int64_t each : kept_steps(folder_))
    if (each > step) fs::remove(path_of(folder_, each));
}

std::vector<int64_t> kept_steps(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(name_start) || !name.ends_with(name_end)) continue;
    const char* first = name.data() + name_start.size();
    const char* last = name.data() + name.size() - name_end.size();
    int64_t step = 0;
    if (first < last && std::from_chars(first, last, step).ptr == last) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void average_weights(const std::string& folder, const std::vector<int64_t>& steps,
                     const std::string& path) {
  if (steps.empty())
    fail("{}: keeps no weights to average; train with --set train.keep_checkpoints=10", folder);
  TensorFile sum;
  for (const int64_t step : steps) {
    const std::string each = path_of(folder, step);
    TensorFile file = read_safetensors(each);
    if (sum.tensors.empty())
      sum = std::move(file);
    else
      add_to(sum, file, each);
  }
  for (auto& [name, total] : sum.tensors) total /= static_cast<double>(steps.size());
  write_safetensors(path, sum);
}

}  // namespace attend
