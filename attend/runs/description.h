#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attend {

// Describes a model folder: model (the folder), config (its settings), source_tokens and
// target_tokens (sizes of the vocabularies), parameters ([{name, shape, count}]), parameter_count,
// weight_bytes and history (see read_history). Errors as load_pair_model.
nlohmann::json describe_model(const std::string& folder);

}  // namespace attend
