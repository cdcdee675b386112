#pragma once

#include "attend/data/source_kind.h"

namespace attend {

SourceKind image_kind();
SourceKind sound_kind();
SourceKind number_set_kind();
SourceKind picture_set_kind();
SourceKind molecule_kind();

// Converts values [C, H, W] from 0 to 1 to a picture with C = 1 or 3 channels.
Image shown_image(const at::Tensor& values);

}  // namespace attend
