#pragma once

namespace torch::headeronly {

enum class ScalarType { Byte, Long, Half, Float, Double, Bool, BFloat16 };

}  // namespace torch::headeronly
