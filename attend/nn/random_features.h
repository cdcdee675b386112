#pragma once

#include <ATen/ATen.h>

namespace attend {

// The directions omega [features, depth] of the score positive_features, float32. Rows form blocks
// of `depth` orthogonal rows. Each row by itself is distributed as a vector of `depth` standard
// normal numbers. Orthogonal rows estimate exp(q . k / sqrt(D)) with less variance than independent
// rows (Choromanski et al. 2021, section 2.4). Both sizes are 1 or more.
at::Tensor orthogonal_features(int64_t features, int64_t depth, const at::Generator& generator);

// Redraws omega [..., features, depth] in place and without a gradient, independently for each
// leading index. Redrawing during training prevents the model from adapting to a single draw.
void redraw_features(const at::Tensor& omega, const at::Generator& generator);

}  // namespace attend
