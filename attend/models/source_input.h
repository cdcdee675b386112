#pragma once

#include <torch/nn/modules/conv.h>

#include <memory>
#include <vector>

#include "attend/base/settings.h"
#include "attend/data/node_graph.h"
#include "attend/nn/dropout.h"
#include "attend/nn/positions.h"

namespace attend {

// What a network reads: the tokens of a vocabulary or, where `depth` is set, vectors (frames),
// such as those of a sound, the patches of an image or the atoms of a molecule.
struct SourceShape {
  SourceShape(int64_t tokens) : tokens(tokens) {}  // NOLINT: a vocabulary's size is a shape
  SourceShape(int64_t depth, const GridSize& grid) : depth(depth), grid(grid) {}

  bool is_frames() const { return depth > 0; }
  // Whether the frames of a source are the patches of one image.
  bool is_image() const { return grid.height > 0; }
  // Whether each frame is an image.
  bool is_image_set() const { return frame_grid.height > 0; }
  // The patches of an image.
  const GridSize& patches() const { return is_image_set() ? frame_grid : grid; }
  // Whether frames tell which of them see each other.
  bool has_neighbours() const { return neighbours > 0; }
  // The numbers that a frame tells of itself, in front of those of its neighbours.
  int64_t features() const { return depth - 2 * neighbours; }

  int64_t tokens = 0;
  int64_t depth = 0;         // of a frame
  GridSize grid = {};        // of the patches of an image, row by row; otherwise 0 by 0
  GridSize frame_grid = {};  // of the patches of each frame, where it is an image; otherwise 0 by 0
  int64_t channels = 1;      // of an image, one after another in each patch
  std::shared_ptr<const NodeGraph> graph = nullptr;  // whose nodes the tokens are, in their order,
                                                     // behind the fixed ones; null: of none
  int64_t neighbours = 0, neighbour_kinds = 0;       // of frames, as FrameShape has them
};

// How images enter a network.
struct ImageInputConfig {
  int64_t convolutions = 0;  // each is 3 x 3 with ReLU and halves height and width, so that the
                             // last one leaves one vector for each patch of 2^convolutions pixels
                             // per side; one more spreads these over their neighbours. The vectors
                             // of an image that is an element of a set are put side by side
  int64_t channels = 8;      // of the first of them; each has twice as many as the one before
  bool flip = false;         // in training, each second image is mirrored, left to right
  int64_t shift = 0;         // in training, pixels that it moves at most, up or down and sideways

  Settings settings();  // keys model.*

  // Error, with what to take instead, where these do not fit the shape.
  void check(const SourceShape& shape) const;
};

// How a source enters a network: tokens by an embedding, frames by a linear map, which images may
// pass some convolutions before. Without positions.
class SourceInput : public torch::nn::Module {
 public:
  // Error as ImageInputConfig::check.
  SourceInput(const SourceShape& shape, int64_t depth, const ImageInputConfig& image = {});

  // [B, S] int64 or [B, S, F] -> [B, S, depth]. Error on the other kind, on frames of another depth
  // and on an image of another number of patches.
  at::Tensor forward(const at::Tensor& source, const Pass& pass);

  // The matrix [tokens, depth] of the embedding, to share; for frames the linear map, [depth, ..].
  const at::Tensor& weight() const { return weight_; }

 private:
  at::Tensor moved(const at::Tensor& image, const Pass& pass) const;
  at::Tensor convolved(at::Tensor image);

  SourceShape shape_;
  bool flip_;
  int64_t shift_;
  at::Tensor weight_;
  at::Tensor bias_;  // of frames
  std::vector<torch::nn::Conv2d> convolutions_;
};

}  // namespace attend
