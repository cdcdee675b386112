#include "attend/models/pair_model.h"

namespace attend {

std::shared_ptr<PairNetwork> PairModel::make_network() const {
  return config.chosen().make_network(source_shape(), target_shape());
}

SourceShape PairModel::source_shape() const {
  if (const SourceKind* kind = text.source_kind()) return kind->shape(text.frames);
  if (graph != nullptr) return NodeForm{source_vocabulary.size(), graph};
  return source_vocabulary.size();
}

std::string PairModel::target_text(const std::vector<int64_t>& ids) const {
  return codecs.target.join(target_vocabulary.decode(ids));
}

}  // namespace attend
