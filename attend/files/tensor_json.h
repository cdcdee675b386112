#pragma once

#include <ATen/ATen.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace attend {

// Reads a tensor from nested JSON lists of equal depth: [[1, 2.5], [3, "-inf"]]. JSON lacks
// infinities and NaN, which are the strings "inf", "-inf" and "nan". The dtype is bool if all
// values are true or false, int64 if all are whole numbers below 2^53, otherwise float64. At most 8
// axes. Error, with line and column, on lists of unequal lengths and other input.
at::Tensor parse_tensor_json(std::string_view text, const std::string& name);
at::Tensor read_tensor_json(const std::string& path);

// Returns a tensor of any real dtype in that form.
nlohmann::json tensor_json(const at::Tensor& tensor);

}  // namespace attend
