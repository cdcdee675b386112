#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "attend/base/base64.h"
#include "attend/files/safetensors.h"
#include "attend/import/import_model.h"
#include "tests/support/files.h"

namespace attend::test {

using nlohmann::json;

// Output of tools/pretrained_check.py --golden.
inline const json& golden() {
  static const json all = json::parse(std::ifstream(GOLDEN));
  return all;
}

inline const json& golden_case(const std::string& name) {
  for (const json& each : golden()["cases"])
    if (each["name"] == name) return each;
  throw std::runtime_error("no case " + name);
}

// The values of tensor `number`, numbered by name, as in the script.
inline at::Tensor by_formula(int64_t number, const std::vector<int64_t>& shape, bool is_norm) {
  at::Tensor values = at::empty(shape, at::kDouble);
  auto* numbers = values.data_ptr<double>();
  for (int64_t k = 0; k < values.numel(); ++k)
    numbers[k] = static_cast<double>((k * 37 + number * 101) % 199 - 99) / 150;
  return (is_norm ? 1 + values / 3 : values).to(at::kFloat);
}

inline std::map<std::string, at::Tensor> tensors_of(const json& one) {
  std::map<std::string, at::Tensor> tensors;
  int64_t number = 0;
  for (const auto& [name, shape] : one["tensors"].items()) {
    const bool is_norm = (name.find("norm") != name.npos || name.find("Norm") != name.npos ||
                          name.find(".ln_") != name.npos) &&
                         name.ends_with("weight");
    tensors[name] = by_formula(number++, shape.get<std::vector<int64_t>>(), is_norm);
  }
  return tensors;
}

// A folder as transformers saves it, which tests may change before they write it.
struct ForeignFolder {
  explicit ForeignFolder(const std::string& name)
      : files(golden_case(name)["files"]), tensors(tensors_of(golden_case(name))) {}

  void write(const std::string& folder) const {
    std::filesystem::create_directories(folder);
    for (const auto& [name, document] : files.items()) {
      const std::filesystem::path path = std::filesystem::path(folder) / name;
      std::filesystem::create_directories(path.parent_path());
      std::string bytes = document.is_string() ? document.get<std::string>() : document.dump();
      if (path.extension() == ".spm" || path.extension() == ".model") bytes = base64_bytes(bytes);
      std::ofstream(path) << bytes;
    }
    if (!tensors.empty()) write_safetensors(folder + "/model.safetensors", {tensors, {}});
  }

  json& config() { return files["config.json"]; }

  json files;  // texts as they are (.spm and .model in base64), other files as JSON
  std::map<std::string, at::Tensor> tensors;
};

// mBART of 2020, which answers in Romanian: its tokenizer has 25 languages, and a folder without a
// tokenizer_class means it.
inline ForeignFolder mbart_of_2020() {
  ForeignFolder folder("MBartForConditionalGeneration");
  folder.files["tokenizer_config.json"].erase("tokenizer_class");
  folder.files["tokenizer_config.json"]["src_lang"] = "cs_CZ";
  // Ids of the case: pieces, 52 languages (ro_RO is the 20th), the mask and two without a
  // token.
  const int64_t romanian = folder.config()["vocab_size"].get<int64_t>() - 2 - 1 - 52 + 19;
  folder.files["generation_config.json"].erase("forced_bos_token_id");
  folder.files["generation_config.json"]["decoder_start_token_id"] = romanian;
  return folder;
}

// The error message for a changed folder; checks that nothing was written.
inline std::string refused(const std::string& name,
                           const std::function<void(ForeignFolder&)>& change) {
  const TemporaryFolder folder;
  ForeignFolder foreign(name);
  change(foreign);
  foreign.write(folder / "theirs");
  const std::string message = error_of([&] { import_model(folder / "theirs", folder / "ours"); });
  EXPECT_FALSE(std::filesystem::exists(folder / "ours")) << message;
  EXPECT_EQ(message.find('\n'), message.npos);
  return message;
}

}  // namespace attend::test
