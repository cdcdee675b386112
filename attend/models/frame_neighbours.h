#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "attend/nn/multi_head_attention.h"

namespace attend {

// Neighbours of each of the frames [B, S, F], from its last 2 * most numbers (NeighbourForm). These
// are the offsets of its neighbours from its own position, then the kinds of the edges, from 1; 0:
// no edge. Each frame is also its own neighbour, with edge kind 0. Neighbours at or after lengths
// [B] are ignored, because a source may be truncated. Error if a frame lists a neighbour twice.
Neighbours frame_neighbours(const at::Tensor& frames, const at::Tensor& lengths, int64_t maximum);

}  // namespace attend
