// make_page CASE FILE: an explanation page of random but structured weights, for the tests in a
// browser. CASE is small, picture, large, model, long, empty or hostile.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/pictures/map_page.h"
#include "attend/pictures/render.h"

namespace attend {
namespace {

// Fast, with the same numbers on every machine.
class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed * 2654435761U + 1) {}

  float unit() {
    state_ = state_ * 1664525U + 1013904223U;
    return static_cast<float>(state_ >> 8) * 0x1p-24f;
  }

 private:
  uint32_t state_;
};

// Rows like the rows of trained heads: a band next to the diagonal, the first token, a repeated
// distance, and noise, in shares that differ per head.
class HeadRows {
 public:
  HeadRows(int64_t columns, int seed)
      : columns_(columns),
        random_(static_cast<uint32_t>(seed)),
        offset_(seed % 5 - 2),
        width_(1.0f + 3.0f * static_cast<float>(seed % 4)),
        sink_(seed % 3 == 0 ? 0.5f : 0.02f),
        period_(seed % 4 == 1 ? 40 + 7 * seed : 0),
        noise_(seed % 2 == 0   ? 0.05f
               : columns < 100 ? 0.2f
                               : 1.0f) {}

  void fill(float* weights, double position) {
    const float floor = noise_ / static_cast<float>(columns_);
    for (int64_t column = 0; column < columns_; ++column) weights[column] = floor * random_.unit();
    const auto centre = static_cast<int64_t>(position) + offset_;
    for (int64_t column = std::max<int64_t>(0, centre - 60);
         column < std::min(columns_, centre + 60); ++column)
      weights[column] += (0.5f + random_.unit()) *
                         std::exp(-std::abs(static_cast<float>(column - centre)) / width_) / width_;
    for (int64_t column = centre - period_; period_ > 0 && column >= 0; column -= period_)
      if (column < columns_) weights[column] += 0.2f * random_.unit();
    weights[0] += sink_ * (0.5f + random_.unit());
    float sum = 0;
    for (int64_t column = 0; column < columns_; ++column) sum += weights[column];
    for (int64_t column = 0; column < columns_; ++column) weights[column] /= sum;
  }

 private:
  int64_t columns_;
  Random random_;
  int64_t offset_;
  float width_;
  float sink_;
  int64_t period_;
  float noise_;
};

PageHead make_head(int64_t rows, int64_t columns, int seed, const PageDetail& detail) {
  constexpr int64_t kBlock = 256;
  HeadRows source(columns, seed);
  HeadReducer reducer(rows, columns, detail);
  std::vector<float> block(static_cast<size_t>(std::min(kBlock, rows) * columns));
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t count = std::min(kBlock, rows - first);
    for (int64_t row = 0; row < count; ++row)
      source.fill(block.data() + row * columns,
                  static_cast<double>((first + row) * columns) / static_cast<double>(rows));
    reducer.add(block.data(), count);
  }
  return reducer.finish();
}

PageTokens make_tokens(const std::string& name, int64_t count) {
  const std::vector<std::string> words = {"the ", "attention", " head",   "looks",
                                          "at",   "every",     "\ttoken", "of",
                                          "a",    "page",      ",",       "quietly"};
  PageTokens list{name, {}};
  for (int64_t i = 0; i < count; ++i) {
    const auto word = static_cast<size_t>(i * 7 + i / 12) % words.size();
    list.tokens.push_back(words[word] + (i % 5 == 0 ? std::to_string(i) : ""));
  }
  return list;
}

ExplanationPage make_model(int layers, int heads, int64_t tokens) {
  ExplanationPage page;
  page.title = std::to_string(layers * heads) + " heads over " + std::to_string(tokens) + " tokens";
  page.tokens = {make_tokens("source", tokens)};
  const PageDetail detail = page_detail(layers * heads, layers * heads * tokens * tokens);
  for (int layer = 0; layer < layers; ++layer) {
    PageMap map{"encoder " + std::to_string(layer + 1), 0, 0, {}};
    for (int head = 0; head < heads; ++head)
      map.heads.push_back(make_head(tokens, tokens, layer * heads + head, detail));
    page.maps.push_back(std::move(map));
  }
  return page;
}

ExplanationPage make_small() {
  ExplanationPage page;
  page.title = "the agreement on the European Economic Area was signed in August 1992";
  page.note = "A translation of one sentence, explained by three methods. The weights are made up.";
  page.tokens = {{"source",
                  {"the", "agreement", "on", "the", "European", "Economic", "Area", "was", "signed",
                   "in", "August", "1992", "."}},
                 {"target",
                  {"l'", "accord", "sur", "la", "zone", "économique", "européenne", "a", "été",
                   "signé", "en", "août", "1992", "."}}};
  const PageDetail whole{.kept = 0};
  const auto size = [&](size_t list) {
    return static_cast<int64_t>(page.tokens[list].tokens.size());
  };
  PageHead signed_map = make_head(size(1), size(0), 2, whole);
  for (size_t i = 0; i < signed_map.weights.size(); i += 3) signed_map.weights[i] *= -0.5f;
  page.methods = {
      {"attention",
       "The weights of the last layer over the source, the mean of its heads.",
       1,
       0,
       make_head(size(1), size(0), 8, whole),
       {{"comprehensiveness",
         "How far the answer's probability falls without the five largest tokens.", 0.412, true,
         0.371, 0.455, "at least 0.2", true},
        {"agreement with deletion", "Rank correlation with what deleting each token does.", 0.634,
         true, 0.58, 0.69, "at least 0.5", true}}},
      {"gradient x input",
       "The derivative of the answer's logarithm times the embedding.",
       1,
       0,
       std::move(signed_map),
       {{"comprehensiveness",
         "How far the answer's probability falls without the five largest tokens.", 0.208, true,
         0.151, 0.266, "at least 0.2", true},
        {"random weights", "Rank correlation with the map of a model of random weights.", 0.91,
         true, 0.88, 0.93, "at most 0.5", false}}},
      {"rollout",
       "Attention multiplied through the layers.",
       1,
       0,
       make_head(size(1), size(0), 5, whole),
       {}}};
  const auto add = [&](const std::string& name, size_t rows, size_t columns, int seed) {
    PageMap map{name, rows, columns, {}};
    for (int head = 0; head < 4; ++head)
      map.heads.push_back(make_head(size(rows), size(columns), seed + head, whole));
    page.maps.push_back(std::move(map));
  };
  add("encoder 1", 0, 0, 1);
  add("encoder 2", 0, 0, 5);
  add("decoder 1", 1, 1, 3);
  add("decoder 1 over the source", 1, 0, 2);
  PageLens lens{{"input", "decoder 1"}, 1, {}};
  for (size_t i = 0; i < page.tokens[1].tokens.size(); ++i)
    lens.cells.push_back({"la", 0.25, 0.125});
  for (const std::string& token : page.tokens[1].tokens) lens.cells.push_back({token, 0.5, 0.5});
  page.lens = std::move(lens);
  return page;
}

// An image of 2 x 3 parts, which the two letters of an answer attend to, and which attend to each
// other.
ExplanationPage make_picture() {
  const std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"12\" height=\"8\">"
      "<rect width=\"12\" height=\"8\" fill=\"#000\"/>"
      "<rect x=\"4\" width=\"4\" height=\"8\" fill=\"#fff\"/></svg>";
  ExplanationPage page;
  page.title = "71";
  page.tokens = {{"source",
                  {"row 1, column 1", "row 1, column 2", "row 1, column 3", "row 2, column 1",
                   "row 2, column 2", "row 2, column 3"},
                  SourcePicture{render_png(svg, 1), 8, 12, 2, 3}},
                 {"answer", {"7", "1"}}};
  const PageHead weights{2, 6, {0, 0.75f, 0.25f, 0, 0, 0, 0, 0, 0, 0, -1, 0}};
  const EvidenceFigure failed{
      "comprehensiveness", "How far the answer falls.", 0.01, false, 0, 0, "at least 0.2", false};
  page.methods = {{"attention", "The weights.", 1, 0, weights, {}},
                  {"rollout", "Through the layers.", 1, 0, weights, {failed}}};
  page.maps = {{"encoder 1", 0, 0, {make_head(6, 6, 1, {.kept = 0})}},
               {"decoder 1", 1, 1, {make_head(2, 2, 1, {.kept = 0})}}};
  return page;
}

ExplanationPage make_hostile() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExplanationPage page;
  page.title = "</title><script>document.title = 'broken'</script>";
  page.note = "<img src=x onerror=\"document.title='broken'\">";
  page.tokens = {{"</script>",
                  {"</script><script>document.title = 'broken'</script>", "<!--<script>", " ",
                   "\xff\xfe", "\u202Eabc", "", "\n"}}};
  PageHead head{7, 7, std::vector<float>(49, 0.125f)};
  head.weights[0] = nan;
  head.weights[8] = -std::numeric_limits<float>::infinity();
  head.weights[16] = -0.75f;
  page.methods = {
      {"<b>bold</b>", "</script>", 0, 0, head, {{"<i>", "&amp;", nan, true, nan, 1, "<", false}}}};
  page.maps = {{"<u>layer</u>", 0, 0, {head, head}}, {"no heads", 0, 0, {}}};
  return page;
}

ExplanationPage make_page(std::string_view name) {
  if (name == "small") return make_small();
  if (name == "picture") return make_picture();
  if (name == "large") return make_model(1, 8, 1000);  // keeps only the largest weights of each row
  if (name == "model") return make_model(12, 12, 512);
  if (name == "long") return make_model(1, 32, 10000);
  if (name == "hostile") return make_hostile();
  return {"nothing", "", {}};
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "make_page small|picture|large|model|long|empty|hostile FILE\n";
    return 2;
  }
  std::ofstream out(argv[2], std::ios::binary);
  attend::write_page(out, attend::make_page(argv[1]));
}
