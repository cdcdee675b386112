#pragma once

#include <optional>
#include <string>

#include "attend/files/safetensors.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/import/hub_folder-inl.h"

namespace attend::internal {

// Finds the type of a model and completes its config.json: model_type from the class that
// `architectures` names or from the names of tensors, and `architectures` from the tensors of
// heads. Notes report completed keys. `tensors` is set to the folder's tensors if they were needed.
// Error, with what to write, if the tensors fit no type or several classes.
const ForeignType& find_foreign_type(const std::string& folder, JsonFile& config,
                                     std::optional<TensorFile>& tensors, Notes& notes);

}  // namespace attend::internal
