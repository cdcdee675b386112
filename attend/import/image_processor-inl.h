#pragma once

#include <string>

#include "attend/import/foreign_model-inl.h"

namespace attend::internal {

// What preprocessor_config.json says of how images are resized, cut and scaled, for a model that
// reads them as `images` has them. Error where the file is missing, on a key or a value that is not
// honoured, and where it makes images of another size.
void read_image_processor(const std::string& folder, ForeignImages& images, Notes& notes);

}  // namespace attend::internal
