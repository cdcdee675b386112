#include "attend/explain/shown_similarity.h"

#include <fmt/format.h>

#include "attend/explain/weight_grids.h"

namespace attend {
namespace {

std::string title_of(const SimilarityParts& explained) {
  return fmt::format("{} {:.4f}", name_of(explained.measure), explained.similarity);
}

}  // namespace

Shown shown_similarity(const SimilarityParts& explained, const std::vector<EvidenceFigure>& card) {
  const auto &first = explained.first.source, &second = explained.second.source;
  Shown shown;
  shown.text = explained.first.source_text;
  shown.maps.push_back(sum_map(explained.parts, second, first, title_of(explained)));
  shown.sum = {
      title_of(explained), name_of(explained.measure), {{"similarity", explained.similarity}}, {}};
  shown.sum->card = card;
  add_largest(explained.parts.t(), first, second, *shown.sum);
  return shown;
}

ExplanationPage similarity_page(const SimilarityParts& explained,
                                const std::vector<EvidenceFigure>& card) {
  ExplanationPage page;
  page.title = fmt::format("{} | {}: {}", explained.first.source_text, explained.second.source_text,
                           title_of(explained));
  page.note = fmt::format(
      "The {} of the two texts is the sum of all numbers below, one for each pair of tokens.",
      name_of(explained.measure));
  page.tokens = {{"first text", explained.first.source}, {"second text", explained.second.source}};
  PageMethod method;
  method.name = "pairs";
  method.meaning = fmt::format(
      "part of each pair of tokens in the {}: the product of the tokens' parts of the vectors of "
      "their texts (DecompX, Modarressi et al. 2023)",
      name_of(explained.measure));
  method.columns = 0;
  method.rows = 1;
  method.weights = page_head(explained.parts, page_detail(1, explained.parts.numel()));
  method.card = card;
  page.methods.push_back(std::move(method));
  return page;
}

}  // namespace attend
