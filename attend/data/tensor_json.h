#pragma once

#include <ATen/ATen.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace attend {

// A tensor written as nested JSON lists of one depth each: [[1, 2.5], [3, "-inf"]]. JSON has no
// numbers that are not finite, so the strings "inf", "-inf" and "nan" stand for them. All true and
// false: bool; all whole numbers below 2^53: int64; float64 otherwise. At most 8 axes. Error with
// line and column for lists of unequal lengths and anything else.
at::Tensor parse_tensor_json(std::string_view text, const std::string& name);
at::Tensor read_tensor_json(const std::string& path);

// The same form of a tensor of any real dtype.
nlohmann::json tensor_json(const at::Tensor& tensor);

}  // namespace attend
