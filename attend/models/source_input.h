#pragma once

#include <torch/nn/modules/conv.h>

#include <memory>
#include <vector>

#include "attend/base/settings.h"
#include "attend/data/node_graph.h"
#include "attend/nn/dropout.h"
#include "attend/nn/positions.h"

namespace attend {

// The sources of a network: vocabulary tokens or, if `depth` is set, vectors (frames), such as
// sound frames, image patches or atoms of a molecule.
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
  // Whether frames list their neighbours.
  bool has_neighbours() const { return neighbours > 0; }
  // Number of values of a frame before the values of its neighbours.
  int64_t features() const { return depth - 2 * neighbours; }

  int64_t tokens = 0;
  int64_t depth = 0;         // depth of a frame
  GridSize grid = {};        // patches of an image, row by row; otherwise 0 by 0
  GridSize frame_grid = {};  // patches of each frame, if frames are images; otherwise 0 by 0
  int64_t channels = 1;      // channels of an image, one after another in each patch
  std::shared_ptr<const NodeGraph> graph = nullptr;  // graph of the nodes that the tokens after the
                                                     // fixed ones name, in order; null: no graph
  int64_t neighbours = 0, neighbour_kinds = 0;       // neighbours of frames, see FrameShape
};

// How a network reads images.
struct ImageInputConfig {
  int64_t convolutions = 0;  // number of 3 x 3 convolutions with ReLU that each halve height and
                             // width; they leave one vector per patch of 2^convolutions pixels per
                             // side. One more convolution spreads these over their neighbours. If
                             // sets contain images, the vectors of an image are concatenated
  int64_t channels = 8;      // channels of the first convolution; each doubles them
  bool flip = false;         // in training, mirrors half of the images at random, left to right
  int64_t shift = 0;  // in training, maximum random shift of an image in pixels, vertically and
                      // horizontally

  Settings settings();  // keys model.*

  // Error, with an alternative, if the settings do not fit the shape.
  void check(const SourceShape& shape) const;
};

// Maps a source to vectors, without positions: tokens by an embedding; frames by a linear map,
// after optional convolutions for images.
class SourceInput : public torch::nn::Module {
 public:
  // Error as ImageInputConfig::check.
  SourceInput(const SourceShape& shape, int64_t depth, const ImageInputConfig& image = {});

  // [B, S] int64 or [B, S, F] -> [B, S, depth]. Error if the source is of the wrong kind, or if
  // frames have another depth or an image another number of patches.
  at::Tensor forward(const at::Tensor& source, const Pass& pass);

  // The embedding matrix [tokens, depth], for sharing; for frames the linear map [depth, ..].
  const at::Tensor& weight() const { return weight_; }

 private:
  at::Tensor moved(const at::Tensor& image, const Pass& pass) const;
  at::Tensor convolved(at::Tensor image);

  SourceShape shape_;
  bool flip_;
  int64_t shift_;
  at::Tensor weight_;
  at::Tensor bias_;  // for frames
  std::vector<torch::nn::Conv2d> convolutions_;
};

}  // namespace attend
