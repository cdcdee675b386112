#include "attend/explain/layer_maps.h"

#include <fmt/format.h>

#include <algorithm>

namespace attend {
namespace {

using at::Tensor;

using Tokens = std::vector<std::string>;

// Tokens of the vectors of a self-attention layer.
Tokens vector_tokens(const Subject& subject, const TracedAttention& attention) {
  const auto count = static_cast<size_t>(attention.columns());
  Tokens tokens;
  const bool decoder = attention.site.part == NetworkPart::decoder;
  if (decoder) {
    tokens = {"<s>"};
    tokens.insert(tokens.end(), subject.target.begin(), subject.target.end());
  } else {
    const int64_t before = subject.network().top_vectors_of(subject.batch).before_source;
    // A language model's text begins with a start token and ends with the answer.
    const bool has_bos = attention.site.part == NetworkPart::layers;
    if (before > 0) tokens = {has_bos ? "<s>" : "<class>"};
    tokens.resize(static_cast<size_t>(before), "<register>");
    tokens.insert(tokens.end(), subject.source.begin(), subject.source.end());
    if (has_bos) tokens.insert(tokens.end(), subject.target.begin(), subject.target.end());
  }
  tokens.resize(count, "</s>");
  return tokens;
}

Tokens row_tokens(const Subject& subject, const TracedAttention& attention) {
  Tokens tokens;
  if (attention.site.reads_source)
    tokens = subject.target;
  else if (attention.site.part == NetworkPart::pooling)
    tokens = {"<answer>"};
  else
    return vector_tokens(subject, attention);
  tokens.resize(static_cast<size_t>(attention.rows()), "</s>");
  return tokens;
}

// Sequence of a self-attention layer.
Sequence own_sequence(const Site& site) {
  if (site.part == NetworkPart::decoder) return Sequence::answered;
  return site.part == NetworkPart::layers ? Sequence::text : Sequence::source;
}

Tensor grouped(const Tensor& map, int64_t axis, const WordGroups& groups, bool mean) {
  if (groups.pieces.empty()) return map;  // an answer may be empty
  std::vector<Tensor> parts;
  for (const auto& [first, count] : groups.pieces) {
    const Tensor part = map.narrow(axis, first, count);
    parts.push_back(mean ? part.mean(axis, true) : part.sum(axis, true));
  }
  return at::cat(parts, axis);
}

}  // namespace

Sequence LayerMap::row_sequence() const {
  return is_self_attention(site) ? own_sequence(site) : Sequence::answer;
}

Sequence LayerMap::column_sequence() const {
  return is_self_attention(site) ? own_sequence(site) : Sequence::source;
}

bool is_self_attention(const Site& site) {
  return !site.reads_source && site.part != NetworkPart::pooling;
}

LayerMap map_of(const Subject& subject, const TracedAttention& attention) {
  return {attention.name(), row_tokens(subject, attention),
          is_self_attention(attention.site) ? vector_tokens(subject, attention) : subject.source,
          traced_weights(attention).detach().to(at::kCPU), attention.site};
}

std::vector<LayerMap> layer_maps(const Subject& subject, const NetworkTrace& trace) {
  std::vector<LayerMap> maps;
  for (const TracedAttention& one : trace.attentions)
    if (one.has_weights()) maps.push_back(map_of(subject, one));
  return maps;
}

WordGroups group_words(const std::vector<std::string>& tokens) {
  WordGroups groups;
  bool within = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool has_bos = tokens[i].size() > 2 && tokens[i].ends_with("@@");
    const std::string piece = has_bos ? tokens[i].substr(0, tokens[i].size() - 2) : tokens[i];
    if (within) {
      groups.words.back() += piece;
      ++groups.pieces.back().second;
    } else {
      groups.words.push_back(piece);
      groups.pieces.emplace_back(static_cast<int64_t>(i), 1);
    }
    within = has_bos;
  }
  return groups;
}

Tensor merge_words(const Tensor& map, const WordGroups& rows, const WordGroups& columns) {
  return grouped(grouped(map, map.dim() - 2, rows, /*mean=*/true), map.dim() - 1, columns,
                 /*mean=*/false);
}

LayerMap merge_words(const LayerMap& map) {
  const WordGroups rows = group_words(map.rows), columns = group_words(map.columns);
  return {map.name, rows.words, columns.words, merge_words(map.weights, rows, columns), map.site};
}

std::string pharaoh(const Tensor& scores) {
  const Tensor best = scores.argmax(1).cpu();
  std::string line;
  for (int64_t target = 0; target < best.size(0); ++target)
    line += fmt::format("{}{}-{}", target == 0 ? "" : " ", best[target].item<int64_t>(), target);
  return line;
}

}  // namespace attend
