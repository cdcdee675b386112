#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "attend/data/node_graph.h"

namespace attend {

// Ids of a vocabulary.
struct TokenForm {
  int64_t tokens = 0;
};

// One text or a pair of texts. A token of the second text has the id of a vocabulary plus `tokens`,
// and so have special tokens after it.
struct PairForm {
  int64_t tokens = 0;
  int64_t closing = 0;  // number of special tokens after the second text, if answers are its parts
};

// Ids of a vocabulary. The tokens after the fixed ones name the nodes of a graph, in order.
struct NodeForm {
  int64_t tokens = 0;
  std::shared_ptr<const NodeGraph> graph;
};

// A sequence or a set of frames. A frame is a vector.
struct FrameForm {
  int64_t depth = 0;  // numbers per frame
};

// The frames of one image: its patches, row by row.
struct ImageForm {
  int64_t depth = 0;
  int64_t rows = 0, columns = 0;  // patches down and across
  int64_t channels = 1;           // per pixel; stored channel by channel in a patch
};

// A set of images. Each frame is one whole image with all its patches.
struct ImageSetForm : ImageForm {};

// Frames that see only their neighbours, such as bonded atoms. A frame ends with the offsets to its
// neighbours, followed by the kinds of the edges to them, from 1; 0: no neighbour.
struct NeighbourForm {
  int64_t depth = 0;
  int64_t neighbours = 0;  // maximum number per frame
  int64_t kinds = 0;       // largest kind of an edge + 1
};

using SourceForm =
    std::variant<TokenForm, PairForm, NodeForm, FrameForm, ImageForm, ImageSetForm, NeighbourForm>;

template <class One>
concept IsSourceForm = std::is_constructible_v<SourceForm, One>;

// Form of the sources of a network.
class SourceShape {
 public:
  template <IsSourceForm One>
  SourceShape(One form) : form_(std::move(form)) {}          // NOLINT: each form is a shape
  SourceShape(int64_t tokens) : form_(TokenForm{tokens}) {}  // NOLINT: so is a vocabulary's size

  // The form, or null if it is another one.
  template <class One>
  const One* as() const {
    return std::get_if<One>(&form_);
  }

  bool is_frames() const { return depth() > 0; }
  int64_t tokens() const;  // size of the vocabulary; 0 for frames
  int64_t depth() const;   // numbers per frame; 0 for tokens
  // Number of values of a frame before the values of its neighbours.
  int64_t features() const;
  // The patches and channels of an image or of the images of a set; null: no images.
  const ImageForm* images() const;

  // Whether all sources have the same number of frames.
  bool is_grid() const { return as<ImageForm>() != nullptr; }

  // The same shape with more tokens; frames do not change.
  SourceShape grown(int64_t more_tokens) const;

 private:
  SourceForm form_;
};

}  // namespace attend
