#pragma once

#include "attend/data/source_kind.h"

namespace attend {

SourceKind image_kind();
SourceKind sound_kind();
SourceKind number_set_kind();
SourceKind picture_set_kind();
SourceKind molecule_kind();

// Numbers [H, W] in 0 .. 1 as a picture.
Image grey_image(const at::Tensor& values);

}  // namespace attend
