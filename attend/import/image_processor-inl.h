#pragma once

#include <string>

#include "attend/import/foreign_model-inl.h"

namespace attend::internal {

// Reads from preprocessor_config.json how images are resized, cropped and scaled. `images` holds
// the size that the model reads. Error if the file is missing, on an unsupported key or value, and
// if it produces images of another size.
void read_image_processor(const std::string& folder, ForeignImages& images, Notes& notes);

}  // namespace attend::internal
