#include "attend/models/pair_model.h"

namespace attend {

std::shared_ptr<PairNetwork> PairModel::make_network() const {
  return config.chosen().make_network(source_shape(), target_tokens());
}

SourceShape PairModel::source_shape() const {
  const SourceKind* kind = text.source_kind();
  if (kind == nullptr) {
    SourceShape tokens{source_vocabulary.size()};
    tokens.graph = graph;
    return tokens;
  }
  const FrameShape shape = kind->shape(text.frames);
  SourceShape frames{shape.depth, {shape.rows, shape.columns}};
  frames.frame_grid = {shape.frame_rows, shape.frame_columns};
  frames.channels = shape.channels;
  frames.neighbours = shape.neighbours;
  frames.neighbour_kinds = shape.neighbour_kinds;
  return frames;
}

std::string PairModel::target_text(const std::vector<int64_t>& ids) const {
  return codecs.target.join(target_vocabulary.decode(ids));
}

}  // namespace attend
