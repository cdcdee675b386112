#include "attend/data/source_shape.h"

namespace attend {

int64_t SourceShape::tokens() const {
  return std::visit(
      [](const auto& form) -> int64_t {
        if constexpr (requires { form.tokens; })
          return form.tokens;
        else
          return 0;
      },
      form_);
}

int64_t SourceShape::depth() const {
  return std::visit(
      [](const auto& form) -> int64_t {
        if constexpr (requires { form.depth; })
          return form.depth;
        else
          return 0;
      },
      form_);
}

int64_t SourceShape::features() const {
  const auto* bound = as<NeighbourForm>();
  return depth() - (bound == nullptr ? 0 : 2 * bound->neighbours);
}

const ImageForm* SourceShape::images() const {
  const ImageForm* set = as<ImageSetForm>();
  return set != nullptr ? set : as<ImageForm>();
}

SourceShape SourceShape::grown(int64_t more_tokens) const {
  if (const auto* nodes = as<NodeForm>())
    return NodeForm{nodes->tokens + more_tokens, nodes->graph};
  if (const auto* pair = as<PairForm>()) return PairForm{pair->tokens + more_tokens, pair->closing};
  return is_frames() ? *this : SourceShape(tokens() + more_tokens);
}

}  // namespace attend
