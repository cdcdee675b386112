#pragma once

#include <ATen/ATen.h>

namespace attend {

// The directions omega [features, depth] of the score positive_features, float32: in blocks of
// `depth` rows at right angles to each other, each row as long as a vector of `depth` standard
// normal numbers, so that every row by itself is such a vector. Orthogonal ones estimate
// exp(q . k / sqrt(D)) with less variance than independent ones (Choromanski et al. 2021, section
// 2.4). Both sizes are 1 or more.
at::Tensor orthogonal_features(int64_t features, int64_t depth, const at::Generator& generator);

// Draws omega [..., features, depth] anew, each axis before these by itself, in place and without a
// gradient. A training that draws anew from time to time does not adapt to a single draw.
void redraw_features(const at::Tensor& omega, const at::Generator& generator);

}  // namespace attend
