#include "attend/pictures/map_page.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "attend/base/base64.h"
#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/page_data-inl.h"
#include "attend/pictures/page_files-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

using nlohmann::ordered_json;

constexpr int kRampSteps = 33;

template <class T>
void check_size(const std::string& owner, const char* what, const std::vector<T>& values,
                int64_t wanted) {
  if (static_cast<int64_t>(values.size()) != wanted)
    fail("the page's map {} has {} {}, not the {} that its sizes say: make it with HeadReducer",
         in_quotes(owner), values.size(), what, wanted);
}

void check_kept_columns(const std::string& owner, const PageHead& head) {
  for (size_t i = 0; i < head.kept_columns.size(); ++i) {
    const int64_t column = head.kept_columns[i];
    const bool starts_row = i % static_cast<size_t>(head.kept) == 0;
    if (column < 0 || column >= head.columns || (!starts_row && column <= head.kept_columns[i - 1]))
      fail("the page's map {} holds column {} of {} out of order: make it with HeadReducer",
           in_quotes(owner), column, head.columns);
  }
}

void check_head(const std::string& owner, const PageHead& head, const PageTokens& rows,
                const PageTokens& columns) {
  if (head.rows != static_cast<int64_t>(rows.tokens.size()) ||
      head.columns != static_cast<int64_t>(columns.tokens.size()))
    fail(
        "the page's map {} is {} x {}, its tokens are {} of {} and {} of {}: give one row and one "
        "column per token",
        in_quotes(owner), head.rows, head.columns, rows.tokens.size(), in_quotes(rows.name),
        columns.tokens.size(), in_quotes(columns.name));
  const bool whole = head.kept == 0;
  if (head.kept < 0 || head.kept > head.columns || head.pooled_rows > head.rows ||
      head.pooled_columns > head.columns)
    fail("the page's map {} holds more than its {} x {} weights: make it with HeadReducer",
         in_quotes(owner), head.rows, head.columns);
  check_size(owner, "weights", head.weights, whole ? head.rows * head.columns : 0);
  check_size(owner, "kept columns", head.kept_columns, head.rows * head.kept);
  check_size(owner, "kept weights", head.kept_weights, head.rows * head.kept);
  check_size(owner, "weights in its overview", head.pooled, head.pooled_rows * head.pooled_columns);
  if (!whole) check_kept_columns(owner, head);
}

const PageTokens& tokens_of(const ExplanationPage& page, const std::string& owner, size_t list) {
  if (list >= page.tokens.size())
    fail("the page's map {} asks for token list {} of {}: count from 0", in_quotes(owner), list,
         page.tokens.size());
  return page.tokens[list];
}

void check_picture(const PageTokens& list) {
  const auto tokens = static_cast<int64_t>(list.tokens.size());
  if (!list.picture || list.picture->rows * list.picture->columns == tokens) return;
  fail("the page's picture of {} has {} x {} parts, but {} tokens: give one part per token",
       in_quotes(list.name), list.picture->rows, list.picture->columns, tokens);
}

// Returns the maps in the order of their blocks in the file.
std::vector<const PageHead*> checked_heads(const ExplanationPage& page) {
  for (const PageTokens& list : page.tokens) check_picture(list);
  if (page.lens) {
    const PageTokens& answer = tokens_of(page, "lens", page.lens->columns);
    if (page.lens->cells.size() != page.lens->layers.size() * answer.tokens.size())
      fail("the page's lens has {} cells, for {} layers and {} tokens: give one for each of both",
           page.lens->cells.size(), page.lens->layers.size(), answer.tokens.size());
  }
  std::vector<const PageHead*> heads;
  const auto add = [&](const std::string& owner, size_t rows, size_t columns,
                       const PageHead& head) {
    check_head(owner, head, tokens_of(page, owner, rows), tokens_of(page, owner, columns));
    heads.push_back(&head);
  };
  for (const PageMethod& method : page.methods)
    add(method.name, method.rows, method.columns, method.weights);
  for (const PageMap& map : page.maps)
    for (const PageHead& head : map.heads) add(map.name, map.rows, map.columns, head);
  return heads;
}

ordered_json head_json(const PageHead& head, size_t block) {
  return {{"block", block},
          {"rows", head.rows},
          {"columns", head.columns},
          {"kept", head.kept},
          {"pooledRows", head.pooled_rows},
          {"pooledColumns", head.pooled_columns},
          {"scale", scale_of(head)}};
}

ordered_json figure_json(const EvidenceFigure& figure) {
  ordered_json result = {{"name", visible_text(figure.name)},
                         {"meaning", visible_text(figure.meaning)},
                         {"value", figure.value},
                         {"bar", visible_text(figure.bar)},
                         {"passed", figure.passed}};
  if (!figure.missing.empty()) result["missing"] = visible_text(figure.missing);
  if (figure.has_interval) result["interval"] = {figure.low, figure.high};
  return result;
}

ordered_json ramp_json(Scheme scheme) {
  ordered_json ramp = ordered_json::array();
  for (int step = 0; step < kRampSteps; ++step) {
    const Rgb color = scale_color(step / (kRampSteps - 1.0), scheme);
    ramp.push_back({color.red, color.green, color.blue});
  }
  return ramp;
}

ordered_json list_json(const PageTokens& list) {
  ordered_json tokens = ordered_json::array();
  for (const std::string& token : list.tokens) tokens.push_back(visible_token(token));
  ordered_json result = {{"name", visible_text(list.name)}, {"tokens", std::move(tokens)}};
  if (list.picture)
    result["picture"] = {{"png", base64_text(list.picture->png)},
                         {"height", list.picture->height},
                         {"width", list.picture->width},
                         {"rows", list.picture->rows},
                         {"columns", list.picture->columns}};
  return result;
}

ordered_json lens_json(const PageLens& lens) {
  ordered_json cells = ordered_json::array(), layers = ordered_json::array();
  for (const std::string& layer : lens.layers) layers.push_back(visible_text(layer));
  for (const auto& [token, probability, own] : lens.cells)
    cells.push_back({{"token", visible_token(token)}, {"probability", probability}, {"own", own}});
  return {{"layers", std::move(layers)}, {"columns", lens.columns}, {"cells", std::move(cells)}};
}

ordered_json page_texts(const ExplanationPage& page) {
  ordered_json lists = ordered_json::array();
  for (const PageTokens& list : page.tokens) lists.push_back(list_json(list));
  size_t block = 0;
  ordered_json methods = ordered_json::array();
  for (const PageMethod& method : page.methods) {
    ordered_json card = ordered_json::array();
    for (const EvidenceFigure& figure : method.card) card.push_back(figure_json(figure));
    methods.push_back({{"name", visible_text(method.name)},
                       {"meaning", visible_text(method.meaning)},
                       {"rows", method.rows},
                       {"columns", method.columns},
                       {"head", head_json(method.weights, block++)},
                       {"card", std::move(card)}});
  }
  ordered_json maps = ordered_json::array();
  for (const PageMap& map : page.maps) {
    ordered_json heads = ordered_json::array();
    for (size_t i = 0; i < map.heads.size(); ++i) {
      heads.push_back(head_json(map.heads[i], block++));
      if (i < map.notes.size()) heads.back()["note"] = visible_text(map.notes[i]);
    }
    maps.push_back({{"name", visible_text(map.name)},
                    {"key", visible_text(map.key)},
                    {"rows", map.rows},
                    {"columns", map.columns},
                    {"heads", std::move(heads)}});
  }
  ordered_json texts = {
      {"title", visible_text(page.title)},
      {"note", visible_text(page.note)},
      {"thumbnail", kPageThumbnail},
      {"ramps", {{"light", ramp_json(Scheme::light)}, {"dark", ramp_json(Scheme::dark)}}},
      {"lists", std::move(lists)},
      {"methods", std::move(methods)},
      {"maps", std::move(maps)}};
  if (page.lens) texts["lens"] = lens_json(*page.lens);
  return texts;
}

// Without "<", no data can end the enclosing script element.
std::string inert_json(const ordered_json& document) {
  std::string result;
  for (const char c : document.dump()) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

std::string thumbnails(const std::vector<const PageHead*>& heads) {
  std::string bytes;
  for (const PageHead* head : heads)
    append_codes(bytes, thumbnail_of(*head).weights, scale_of(*head));
  return packed(bytes);
}

}  // namespace

// The script already runs and draws while the browser reads the blocks after it; each block reports
// its arrival.
void write_page(std::ostream& out, const ExplanationPage& page) {
  const std::vector<const PageHead*> heads = checked_heads(page);
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>"
      << escape_markup(visible_text(page.title)) << "</title>\n<style>\n"
      << pictures_page_style() << "</style>\n</head>\n<body>\n"
      << pictures_page_body() << "<script type=\"application/json\" id=\"page\">"
      << inert_json(page_texts(page))
      << "</script>\n<script type=\"application/octet-stream\" id=\"thumbnails\">"
      << thumbnails(heads) << "</script>\n<script>\n"
      << pictures_page_script() << "</script>\n";
  for (size_t block = 0; block < heads.size(); ++block) {
    out << "<script type=\"application/octet-stream\" id=\"block" << block << "\">"
        << packed(head_bytes(*heads[block], scale_of(*heads[block])))
        << "</script>\n<script>arrived(" << block << ")</script>\n";
  }
  out << "</body>\n</html>\n" << std::flush;
  if (!out) fail("the explanation page could not be written: is there room on the disk?");
}

std::string page_json(const ExplanationPage& page) {
  const std::vector<const PageHead*> heads = checked_heads(page);
  ordered_json blocks = ordered_json::array();
  for (const PageHead* head : heads) blocks.push_back(packed(head_bytes(*head, scale_of(*head))));
  const ordered_json document = {{"texts", page_texts(page)},
                                 {"thumbnails", thumbnails(heads)},
                                 {"blocks", std::move(blocks)}};
  return document.dump();
}

}  // namespace attend
