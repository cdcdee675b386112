#pragma once

#include <optional>
#include <set>
#include <string>

#include "attend/base/folder_lock.h"
#include "attend/files/safetensors.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {

// JSON file in memory. A JsonPosition of it must not outlive it.
struct JsonFile {
  std::string path;
  Json json;

  JsonPosition place() const { return {json, path}; }
};

// Reads a JSON file. Error if it is missing, over 16 MiB or not JSON.
JsonFile read_json_file(const std::string& path);
// Like read_json_file(); empty if the file is missing.
std::optional<JsonFile> find_json_file(const std::string& path);

// Reads config.json. Error, with the remedy, if the folder or the file is missing.
JsonFile read_foreign_config(const std::string& folder);

// Reads the tensors of model.safetensors, or of the shards in model.safetensors.index.json. Errors
// as read_safetensors, and if neither exists, if weights are pickled, or if shards exceed the
// memory. Also an Error if the index names another folder or a tensor that its shard lacks.
TensorFile read_foreign_tensors(const std::string& folder);

// Locks the folder of --out. Error if it holds other files than `first`, the names of files that
// are written before the last one.
FolderLock take_unused(const std::string& out, const std::set<std::string>& first);

}  // namespace attend::internal
