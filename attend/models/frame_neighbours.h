#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "attend/nn/multi_head_attention.h"

namespace attend {

// Whom each of the frames [B, S, F] sees. Their last 2 `most` numbers tell it, as FrameShape says:
// how many places behind its own each neighbour of a frame lies, and then of which kind the edge to
// each of them is, from 1; 0: there is none. A frame sees itself too, by an edge of kind 0, and
// nothing at or behind lengths [B], where a source may have been cut. Error where a frame tells of
// one neighbour twice.
Neighbours frame_neighbours(const at::Tensor& frames, const at::Tensor& lengths, int64_t most);

}  // namespace attend
