#pragma once

#include <string>
#include <vector>

#include "attend/import/foreign_model-inl.h"

namespace attend::internal {

// Vision Transformer (Dosovitskiy et al. 2021): pre-norm layers over learned tokens and patches.
// The answer is read from the first token.
struct VisionType {
  std::string model_type;
  std::string name;  // name of the class
  std::string prefix;
  std::string processor;  // class that reads images for it
  std::vector<std::string> class_tokens;
};

const std::vector<VisionType>& vision_types();

ForeignModel read_vision(const JsonPosition& config, const VisionType& type);

}  // namespace attend::internal
