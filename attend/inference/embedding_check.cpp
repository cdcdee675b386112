#include "attend/inference/embedding_check.h"

#include <algorithm>
#include <cstring>

namespace attend {
namespace {

// NaN has bits, too.
bool same_bits(const std::vector<float>& one, const std::vector<float>& other) {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0);
}

bool differ(const Embedding& one, const Embedding& other) {
  return !same_bits(one.whole, other.whole) || !same_bits(one.vectors, other.vectors);
}

}  // namespace

EmbeddingCheck check_embeddings(const Model& model, const Model& other,
                                const std::vector<std::string>& texts) {
  const std::vector<Embedding> together = model.embed(texts), elsewhere = other.embed(texts);
  const std::vector<Embedding> backwards = model.embed({texts.rbegin(), texts.rend()});
  EmbeddingCheck check;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (together[i].whole.empty()) continue;
    ++check.texts;
    check.by_itself += differ(together[i], model.embed({texts[i]})[0]);
    check.reversed += differ(together[i], backwards[texts.size() - 1 - i]);
    check.threads += differ(together[i], elsewhere[i]);
  }
  return check;
}

}  // namespace attend
