#include "attend/models/pair_model.h"

#include "attend/base/error.h"

namespace attend {

std::shared_ptr<PairNetwork> PairModel::make_network() const {
  if (text.pairs != PairTexts::never && !config.row().reads_pairs)
    fail(
        "data.pairs is {}, and model.type {} reads single texts; take classifier or reader, or "
        "never",
        name_of(text.pairs), config.type);
  return config.chosen().make_network(source_shape(), target_shape());
}

SourceShape PairModel::source_shape() const {
  if (const SourceKind* kind = text.source_kind()) return kind->shape(text.frames);
  if (text.pairs != PairTexts::never) {
    const int64_t closing = answer_kind().is_span() ? codecs.source.margins(true).after : 0;
    return PairForm{source_vocabulary.size(), closing};
  }
  if (graph != nullptr) return NodeForm{source_vocabulary.size(), graph};
  return source_vocabulary.size();
}

std::string PairModel::target_text(const std::vector<int64_t>& ids) const {
  return codecs.target.join(target_vocabulary.decode(ids));
}

}  // namespace attend
