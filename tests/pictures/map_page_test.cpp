#include "attend/pictures/map_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "attend/base/base64.h"
#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/page_data-inl.h"

namespace attend {
namespace map_page_test {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_weights(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> weights(static_cast<size_t>(count));
  for (float& weight : weights) weight = static_cast<float>(engine()) * 0x1p-32f - 0.25f;
  return weights;
}

PageHead reduced(int64_t rows, int64_t columns, const PageDetail& detail,
                 const std::vector<float>& weights, int64_t block) {
  HeadReducer reducer(rows, columns, detail);
  for (int64_t row = 0; row < rows; row += block)
    reducer.add(weights.data() + row * columns, std::min(block, rows - row));
  return reducer.finish();
}

PageTokens tokens_named(const std::string& name, int64_t count) {
  return {name, std::vector<std::string>(static_cast<size_t>(count), "token")};
}

std::string written(const ExplanationPage& page) {
  std::ostringstream out;
  write_page(out, page);
  return out.str();
}

int count_of(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t position = text.find(part); position != std::string::npos;
       position = text.find(part, position + 1))
    ++found;
  return found;
}

std::string script_of(const std::string& page, const std::string& id) {
  const size_t start = page.find('>', page.find(" id=\"" + id + "\"")) + 1;
  return page.substr(start, page.find("</script>", start) - start);
}

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>(bits >> held & 0xFF));
  }
  return bytes;
}

std::string block_of(const std::string& page, const std::string& id, size_t size) {
  const std::string bytes = from_base64(script_of(page, id));
  std::string result(size + 1, '\0');
  uLongf length = size + 1;
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(result.data()), &length,
                       reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  EXPECT_EQ(length, size);
  result.resize(size);
  return result;
}

// Reads numbers that are stored as planes of bytes from `start` on.
std::vector<uint32_t> from_planes(const std::string& bytes, size_t start, size_t count,
                                  int planes) {
  std::vector<uint32_t> numbers(count);
  for (int plane = 0; plane < planes; ++plane)
    for (size_t i = 0; i < count; ++i)
      numbers[i] |= static_cast<uint32_t>(static_cast<unsigned char>(
                        bytes[start + static_cast<size_t>(plane) * count + i]))
                    << (8 * plane);
  return numbers;
}

std::vector<uint32_t> bits_of(const std::vector<float>& weights) {
  std::vector<uint32_t> bits;
  for (const float weight : weights) bits.push_back(std::bit_cast<uint32_t>(weight));
  return bits;
}

ExplanationPage page_of(const PageHead& head) {
  ExplanationPage page;
  page.title = "a page";
  page.tokens = {tokens_named("target", head.rows), tokens_named("source", head.columns)};
  page.maps = {{"layer", 0, 1, {head}}};
  return page;
}

TEST(HeadReducer, KeepsTheLargestOfEachRow) {
  constexpr int64_t kRows = 23, kColumns = 701, kKept = 16;
  const std::vector<float> weights = random_weights(kRows * kColumns, 1);
  const PageHead head = reduced(kRows, kColumns, {.kept = kKept, .pooled = 50}, weights, 5);
  ASSERT_EQ(head.kept, kKept);
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<std::pair<float, int64_t>> all;
    for (int64_t column = 0; column < kColumns; ++column)
      all.emplace_back(-std::abs(weights[static_cast<size_t>(row * kColumns + column)]), column);
    std::sort(all.begin(), all.end());
    std::vector<int64_t> columns;
    for (int64_t k = 0; k < kKept; ++k) columns.push_back(all[static_cast<size_t>(k)].second);
    std::sort(columns.begin(), columns.end());
    for (int64_t k = 0; k < kKept; ++k) {
      const auto index = static_cast<size_t>(row * kKept + k);
      EXPECT_EQ(head.kept_columns[index], columns[static_cast<size_t>(k)]);
      EXPECT_EQ(head.kept_weights[index],
                weights[static_cast<size_t>(row * kColumns + head.kept_columns[index])]);
    }
  }
}

TEST(HeadReducer, PoolsTheLargestOfEachBlock) {
  constexpr int64_t kRows = 77, kColumns = 130, kPooled = 31;
  const std::vector<float> weights = random_weights(kRows * kColumns, 2);
  const PageHead head = reduced(kRows, kColumns, {.kept = 4, .pooled = kPooled}, weights, 77);
  ASSERT_EQ(head.pooled_rows, kPooled);
  ASSERT_EQ(head.pooled_columns, kPooled);
  std::vector<float> expected(kPooled * kPooled, 0.0f);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      float& pooled = expected[static_cast<size_t>(row * kPooled / kRows * kPooled +
                                                   column * kPooled / kColumns)];
      const float weight = weights[static_cast<size_t>(row * kColumns + column)];
      if (std::abs(weight) > std::abs(pooled)) pooled = weight;
    }
  }
  EXPECT_EQ(head.pooled, expected);
}

TEST(HeadReducer, GivesTheSameInBlocksOfAnySize) {
  const std::vector<float> weights = random_weights(40 * 600, 3);
  const PageHead whole = reduced(40, 600, {}, weights, 40);
  for (const int64_t block : {1, 7, 39}) {
    const PageHead head = reduced(40, 600, {}, weights, block);
    EXPECT_EQ(head.kept_columns, whole.kept_columns);
    EXPECT_EQ(head.kept_weights, whole.kept_weights);
    EXPECT_EQ(head.pooled, whole.pooled);
  }
}

TEST(HeadReducer, KeepsAllWhereARowHasNoMore) {
  const std::vector<float> weights = random_weights(5 * 16, 4);
  EXPECT_EQ(reduced(5, 16, {}, weights, 2).weights, weights);
  EXPECT_EQ(reduced(5, 16, {.kept = 0}, weights, 2).weights, weights);
  EXPECT_TRUE(reduced(5, 16, {.kept = 15}, weights, 2).weights.empty());
}

TEST(HeadReducer, TakesTheFirstOfEqualWeightsAndWhatIsNotFiniteFirst) {
  std::vector<float> weights(40, 0.5f);
  weights[30] = kNan;
  weights[35] = -kInfinity;
  weights[20] = -0.75f;
  const PageHead head = reduced(1, 40, {.kept = 5, .pooled = 4}, weights, 1);
  EXPECT_THAT(head.kept_columns, ElementsAre(0, 1, 20, 30, 35));
  EXPECT_EQ(head.pooled[2], -0.75f);
  EXPECT_TRUE(std::isnan(head.pooled[3]));
}

TEST(HeadReducer, RefusesRowsThatAreTooManyOrMissing) {
  const std::vector<float> weights(40, 0.1f);
  HeadReducer reducer(3, 20, {});
  reducer.add(weights.data(), 2);
  EXPECT_THROW(reducer.finish(), Error);
  EXPECT_THROW(reducer.add(weights.data(), 2), Error);
  EXPECT_THROW(HeadReducer(-1, 2, {}), Error);
  EXPECT_THROW(HeadReducer(1, int64_t{1} << 24, {}), Error);
  EXPECT_THROW(HeadReducer(1, 2, {.kept = 1, .pooled = 0}), Error);
}

TEST(HeadReducer, ReducesMapsWithoutRowsOrColumns) {
  EXPECT_EQ(HeadReducer(0, 1000, {}).finish().kept_weights.size(), 0U);
  HeadReducer narrow(3, 0, {});
  narrow.add(nullptr, 3);
  EXPECT_EQ(narrow.finish().weights.size(), 0U);
}

TEST(PageDetail, HoldsAllOfSmallPagesAndBoundsTheOverviewsOfLargeOnes) {
  EXPECT_EQ(page_detail(12, 12 * 500 * 500).kept, 0);
  EXPECT_EQ(page_detail(32, int64_t{32} * 10000 * 10000).kept, 16);
  EXPECT_EQ(page_detail(32, int64_t{32} * 10000 * 10000).pooled, 512);
  const int64_t side = page_detail(144, int64_t{144} * 512 * 512).pooled;
  EXPECT_LE(144 * side * side, 8 << 20);
  EXPECT_GT(144 * (side + 1) * (side + 1), 8 << 20);
  EXPECT_EQ(page_detail(1 << 20, int64_t{1} << 40).pooled, kPageThumbnail);
}

// RFC 4648, section 10.
TEST(Base64, PadsTheLastBytes) {
  EXPECT_EQ(base64_text(""), "");
  EXPECT_EQ(base64_text("f"), "Zg==");
  EXPECT_EQ(base64_text("fo"), "Zm8=");
  EXPECT_EQ(base64_text("foo"), "Zm9v");
  EXPECT_EQ(base64_text("foobar"), "Zm9vYmFy");
}

TEST(MapPage, HoldsAllWeightsToTheBit) {
  std::vector<float> weights = random_weights(6, 5);
  weights[1] = kNan;
  weights[2] = -kInfinity;
  weights[3] = -0.0f;
  weights[4] = 1e-42f;
  const std::string page = written(page_of({.rows = 2, .columns = 3, .weights = weights}));
  EXPECT_EQ(from_planes(block_of(page, "block0", 24), 0, 6, 4), bits_of(weights));
}

TEST(MapPage, HoldsTheLargestWeightsAndTheOverview) {
  const std::vector<float> weights = random_weights(30 * 300, 6);
  const PageHead head = reduced(30, 300, {.kept = 4, .pooled = 20}, weights, 30);
  const std::string page = written(page_of(head));
  const std::string bytes = block_of(page, "block0", 120 * 7 + 400);
  std::vector<int64_t> columns;
  for (const uint32_t step : from_planes(bytes, 0, 120, 3))
    columns.push_back(step + (columns.size() % 4 == 0 ? 0 : columns.back()));
  EXPECT_EQ(columns, head.kept_columns);
  EXPECT_EQ(from_planes(bytes, 360, 120, 4), bits_of(head.kept_weights));
  const json about = json::parse(script_of(page, "page"))["maps"][0]["heads"][0];
  const float scale = about["scale"];
  EXPECT_EQ(scale, scale_of(head));
  for (size_t i = 0; i < head.pooled.size(); ++i) {
    const auto code = static_cast<signed char>(bytes[840 + i]);
    EXPECT_EQ(std::signbit(head.pooled[i]), code < 0);
    // Rounded up by less than one.
    const double exact = 127 * std::sqrt(std::abs(head.pooled[i]) / static_cast<double>(scale));
    EXPECT_GE(std::abs(code), exact - 1e-9);
    EXPECT_LT(std::abs(code), exact + 1);
  }
}

TEST(MapPage, HoldsAThumbnailOfEachMap) {
  std::vector<float> weights(100 * 2, 0.01f);
  weights[199] = 1;
  weights[0] = kNan;
  const std::string page = written(page_of({.rows = 100, .columns = 2, .weights = weights}));
  const std::string codes = block_of(page, "thumbnails", 64 * 2);
  EXPECT_EQ(codes[127], 127);
  EXPECT_EQ(codes[0], static_cast<char>(-128));
  EXPECT_EQ(codes[64], 13);  // 127 * 0.1, rounded up
}

TEST(MapPage, TextsCannotEndTheirElements) {
  const std::string hostile = "</script><script>alert(1)</script><!--<script>";
  ExplanationPage page = page_of({.rows = 1, .columns = 1, .weights = {1}});
  const std::string harmless = written(page);
  page.title = page.note = hostile;
  page.tokens[0] = {hostile, {hostile}};
  page.maps[0].name = hostile;
  const EvidenceFigure figure{hostile, hostile, kNan, true, kNan, 1, hostile, false};
  page.methods = {{hostile, hostile, 0, 1, page.maps[0].heads[0], {figure}}};
  const std::string text = written(page);
  // One more map: its block and the call after it.
  EXPECT_EQ(count_of(text, "<script"), count_of(harmless, "<script") + 2);
  EXPECT_EQ(count_of(text, "</script"), count_of(harmless, "</script") + 2);
  EXPECT_EQ(count_of(text, "<!--"), 0);
  EXPECT_THAT(text, HasSubstr("<title>&lt;/script&gt;"));
  const json read = json::parse(script_of(text, "page"));
  EXPECT_EQ(read["lists"][0]["tokens"][0], hostile);
  EXPECT_EQ(read["methods"][0]["card"][0]["bar"], hostile);
  EXPECT_TRUE(read["methods"][0]["card"][0]["value"].is_null());
}

TEST(MapPage, ShowsSpacesControlCharactersAndBytesThatAreNoText) {
  ExplanationPage page = page_of({.rows = 1, .columns = 4, .weights = {1, 2, 3, 4}});
  page.tokens[1].tokens = {" a", "\n", "\xff", "\u202Eb"};
  EXPECT_THAT(json::parse(script_of(written(page), "page"))["lists"][1]["tokens"],
              ElementsAre("␣a", "↵", "\uFFFD", "\uFFFDb"));
}

TEST(MapPage, LoadsNothingAndWritesTextsAsTexts) {
  const std::string page = written(page_of({.rows = 1, .columns = 1, .weights = {1}}));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* part : {"http:", "https:", "//www", "@import", "url(", "import(", "fetch(",
                           "XMLHttpRequest", "innerHTML", "outerHTML", "insertAdjacentHTML",
                           "document.write", "eval(", "new Function", " src=", " href="})
    EXPECT_THAT(page, Not(HasSubstr(part))) << part;
}

TEST(MapPage, IsTheSameEachTime) {
  const ExplanationPage page = page_of(reduced(50, 400, {}, random_weights(50 * 400, 7), 50));
  EXPECT_EQ(written(page), written(page));
}

TEST(MapPage, ItsDataAreJsonForAnother) {
  ExplanationPage page = page_of(reduced(50, 400, {}, random_weights(50 * 400, 7), 50));
  page.methods = {{"method", "meaning", 0, 1, page.maps[0].heads[0], {}}};
  const std::string file = written(page);
  const json data = json::parse(page_json(page));
  EXPECT_EQ(data["texts"], json::parse(script_of(file, "page")));
  EXPECT_EQ(data["thumbnails"], script_of(file, "thumbnails"));
  EXPECT_THAT(data["blocks"], ElementsAre(script_of(file, "block0"), script_of(file, "block1")));
  page.maps[0].columns = 2;
  EXPECT_THROW(page_json(page), Error);
}

TEST(MapPage, IsWrittenWithoutMapsTokensOrRows) {
  EXPECT_THAT(written({.title = "", .note = "", .tokens = {}}), HasSubstr("</html>"));
  EXPECT_THAT(written(page_of({.rows = 0, .columns = 3})), HasSubstr("</html>"));
  EXPECT_THAT(written(page_of(HeadReducer(0, 1000, {}).finish())), HasSubstr("</html>"));
}

TEST(MapPage, RefusesMapsThatDoNotBelongToTheirTokens) {
  ExplanationPage page = page_of({.rows = 2, .columns = 2, .weights = {1, 2, 3, 4}});
  page.tokens[1].tokens.pop_back();
  EXPECT_THROW(written(page), Error);
  page = page_of({.rows = 2, .columns = 2, .weights = {1, 2, 3}});
  EXPECT_THROW(written(page), Error);
  page = page_of({.rows = 2, .columns = 2, .weights = {1, 2, 3, 4}});
  page.maps[0].columns = 2;
  EXPECT_THROW(written(page), Error);
  PageHead head = reduced(30, 300, {}, random_weights(30 * 300, 8), 30);
  std::swap(head.kept_columns[3], head.kept_columns[4]);
  EXPECT_THROW(written(page_of(head)), Error);
}

TEST(MapPage, SaysWhenItCannotBeWritten) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(write_page(out, page_of({.rows = 1, .columns = 1, .weights = {1}})), Error);
}

// Columns and weights without pattern compress least: 32 such heads stay within 40 MiB.
TEST(MapPage, IsSmallEvenForNoise) {
  constexpr int64_t kRows = 2500, kColumns = 10000;
  HeadReducer reducer(kRows, kColumns, {});
  for (int64_t row = 0; row < kRows; row += 100)
    reducer.add(random_weights(100 * kColumns, static_cast<unsigned>(row)).data(), 100);
  PageHead head = reducer.finish();
  const size_t overview = packed(std::string(512 * 512, 'x')).size();
  const size_t whole = packed(head_bytes(head, scale_of(head))).size();
  head.pooled.clear();
  const size_t rows_alone = packed(head_bytes(head, scale_of(head))).size();
  EXPECT_GT(whole - rows_alone, overview);
  EXPECT_LT(32 * (4 * rows_alone + (whole - rows_alone)), size_t{40} << 20);
}

}  // namespace map_page_test
}  // namespace attend
