#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/memory.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/runs/out_folder.h"

namespace attend::internal {
namespace {

constexpr int64_t maximum_json = int64_t{16} << 20;

bool is_there(const std::string& path) { return std::filesystem::exists(path); }

[[noreturn]] void refuse_pickles(const std::string& path) {
  fail(
      "{}: holds pickled weights, which run as a program when they are read; if you trust them, "
      "convert them by Python: AutoModel.from_pretrained(FOLDER).save_pretrained(OTHER) of "
      "transformers, with the class that config.json names, writes model.safetensors",
      path);
}

[[noreturn]] void refuse_weights(const std::string& folder) {
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model.pt"})
    if (is_there(folder + "/" + name)) refuse_pickles(folder + "/" + name);
  fail("{}: holds neither model.safetensors nor model.safetensors.index.json; fetch one of them",
       folder);
}

// Files of other libraries in a folder without config.json.
struct OtherFolder {
  const char *file, *what;
};
constexpr OtherFolder other_folders[] = {
    {"adapter_config.json",
     "an adapter, which changes another model; merge the two by merge_and_unload() of PEFT, and "
     "save the result"},
    {"model_index.json", "a pipeline of diffusers; only models of transformers are read"},
    {"open_clip_config.json", "a model of OpenCLIP; only models of transformers are read"},
    {"modules.json",
     "a model of sentence-transformers without an encoder of transformers; such models are not "
     "read"}};

[[noreturn]] void refuse_folder(const std::string& folder) {
  if (!std::filesystem::is_directory(folder))
    fail("{}: is a file; name the folder that holds it and config.json", folder);
  for (const OtherFolder& other : other_folders)
    if (is_there(fmt::format("{}/{}", folder, other.file)))
      fail("{}: holds no config.json, and by {} it is {}", folder, other.file, other.what);
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".gguf")
      fail(
          "{}: is a model of llama.cpp, which is not read; fetch the folder of transformers that "
          "it was made from",
          entry.path().string());
  fail("{}: holds no config.json, so it is not a model of transformers; name the folder with it",
       folder);
}

// Shards are in the folder of their index.
void check_shard_name(const JsonPosition& place, const std::string& name) {
  const std::filesystem::path path(name);
  if (name.empty() || path.filename() != path || !name.ends_with(".safetensors"))
    place.refuse("is {}, which is not a safetensors file next to the index", in_quotes(name));
}

void check_bytes(const std::string& folder, const std::set<std::string>& shards) {
  const int64_t maximum = memory_limit();
  int64_t bytes = 0;
  for (const std::string& shard : shards) {
    bytes += InputFile(fmt::format("{}/{}", folder, shard)).size();
    if (bytes > maximum)
      fail(
          "{}: shards of over {} bytes, which is all the memory there is; take a machine with more",
          folder, maximum);
  }
}

TensorFile read_shards(const std::string& folder, const JsonFile& index) {
  const JsonPosition map = index.place().member("weight_map");
  if (!map.value().is_object()) map.refuse("is not an object");
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map.value().items()) {
    const JsonPosition place = map.member(tensor.c_str());
    check_shard_name(place, place.text());
    shards.insert(place.text());
  }
  check_bytes(folder, shards);
  TensorFile all;
  for (const std::string& shard : shards)
    for (auto& [name, tensor] : read_safetensors(fmt::format("{}/{}", folder, shard)).tensors) {
      if (!map.has(name.c_str()) || map.member(name.c_str()).text() != shard)
        fail("{}/{}: holds tensor {}, which the index does not list", folder, shard,
             in_quotes(name));
      all.tensors.emplace(name, std::move(tensor));
    }
  for (const auto& [tensor, shard] : map.value().items())
    if (!all.tensors.contains(tensor))
      map.member(tensor.c_str()).refuse("is {}, which lacks that tensor", shard.dump());
  return all;
}

}  // namespace

JsonFile read_json_file(const std::string& path) {
  return {path, parse_json(read_file(path, maximum_json), path)};
}

std::optional<JsonFile> find_json_file(const std::string& path) {
  if (!is_there(path)) return std::nullopt;
  return read_json_file(path);
}

JsonFile read_foreign_config(const std::string& folder) {
  if (!is_there(folder)) fail("{}: no such folder; name one that holds config.json", folder);
  if (!is_there(folder + "/config.json")) refuse_folder(folder);
  return read_json_file(folder + "/config.json");
}

TensorFile read_foreign_tensors(const std::string& folder) {
  const std::string whole = folder + "/model.safetensors";
  if (is_there(whole)) return read_safetensors(whole);
  const std::optional<JsonFile> index = find_json_file(whole + ".index.json");
  if (!index) refuse_weights(folder);
  return read_shards(folder, *index);
}

FolderLock take_unused(const std::string& out, const std::set<std::string>& first) {
  FolderLock lock = take_out_folder(out);
  const std::set<std::string> names = names_in(out);
  if (!std::includes(first.begin(), first.end(), names.begin(), names.end()))
    fail("--out {}: exists already; choose a new folder", out);
  return lock;
}

}  // namespace attend::internal
