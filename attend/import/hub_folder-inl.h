#pragma once

#include <optional>
#include <set>
#include <string>

#include "attend/base/folder_lock.h"
#include "attend/data/safetensors.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {

// A JSON file that was read. Places in it live as long as it does.
struct JsonFile {
  std::string path;
  Json json;

  JsonPlace place() const { return {json, path}; }
};

// The JSON of a file; Error where it is missing, over 16 MiB or no JSON.
JsonFile read_json_file(const std::string& path);
// The same; empty where there is no such file.
std::optional<JsonFile> find_json_file(const std::string& path);

// Reads config.json. Error, with the remedy, where the folder or the file is missing.
JsonFile read_foreign_config(const std::string& folder);

// The tensors of model.safetensors, or of the shards that model.safetensors.index.json names.
// Errors as read_safetensors, and: neither is there, weights are pickled, an index that names
// another folder or a tensor that its shard lacks, more bytes than the memory holds.
TensorFile read_foreign_tensors(const std::string& folder);

// Takes the folder of --out, in which nothing may be but the files of these names, which are
// written before the last one.
FolderLock take_unused(const std::string& out, const std::set<std::string>& first);

}  // namespace attend::internal
