#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "attend/base/error.h"
#include "attend/pictures/alignment.h"
#include "attend/pictures/grid-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr int kMaximumLabel = 16;
constexpr int kMaximumHeading = 10;  // width of a heading, or height of an upright one
constexpr int kNarrowestMap = 20;    // columns; below, the strongest source tokens are omitted
constexpr int kNarrowCell = 2;       // width of one wide character

// The shown part of the map, its labels and their widths.
struct Sheet {
  const Alignment& alignment;
  const TextOptions& options;
  const WeightGrid& grid;
  double end;
  std::vector<std::string> source;
  std::vector<std::string> target;
  int label_width;
  int64_t rows, columns;  // shown
};

std::string repeat(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

std::string pad_left(const std::string& text, int width) {
  return repeat(" ", width - columns(text)) + text;
}

std::string pad_right(const std::string& text, int width) {
  return text + repeat(" ", width - columns(text));
}

std::string centred(const std::string& text, int width) {
  return pad_right(repeat(" ", (width - columns(text) + 1) / 2) + text, width);
}

void end_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

std::string plain_ascii(const std::string& text) {
  std::string result;
  for (const Cluster& cluster : clusters(text)) {
    const bool ascii = cluster.bytes.size() == 1 && cluster.bytes.front() > 0;
    result += ascii ? cluster.bytes : cluster.bytes == "␣" ? "_" : "?";
  }
  return result;
}

std::string cut(const std::string& text, int width, bool unicode) {
  return unicode ? shorten(text, width) : shorten(plain_ascii(text), width, "~");
}

std::vector<std::string> shown_labels(const std::vector<std::string>& tokens,
                                      const TextOptions& options) {
  const auto count = std::min(tokens.size(), static_cast<size_t>(options.maximum_tokens));
  std::vector<std::string> labels;
  for (const std::string& token : std::span(tokens).first(count)) {
    labels.push_back(cut(visible_token(token), kMaximumLabel, options.unicode));
  }
  return labels;
}

int widest(const std::vector<std::string>& labels) {
  int width = 0;
  for (const std::string& label : labels) width = std::max(width, columns(label));
  return width;
}

double fraction_of(const Sheet& sheet, double weight) {
  return std::isfinite(weight) ? std::clamp(weight / sheet.end, 0.0, 1.0) : 0;
}

std::string shade(const Sheet& sheet, double weight) {
  static constexpr std::string_view kUnicode[] = {" ", "░", "▒", "▓", "█"};
  static constexpr std::string_view kAscii[] = {" ", ":", "+", "*", "#"};
  if (!std::isfinite(weight)) return "?";
  const double fraction = fraction_of(sheet, weight);
  // The lightest shade starts at 5 %, so that a flat row does not look empty.
  const int level = fraction < 0.05 ? 0 : std::min(4, 1 + static_cast<int>(4 * fraction));
  return std::string(sheet.options.unicode ? kUnicode[level] : kAscii[level]);
}

std::string painted(const Sheet& sheet, double weight, const std::string& text) {
  const double fraction = fraction_of(sheet, weight);
  if (!sheet.options.color || fraction < 0.005) return text;
  const Scheme scheme = sheet.options.dark ? Scheme::dark : Scheme::light;
  const Rgb back = scale_color(fraction, scheme);
  const bool dark_text = sheet.options.dark == (fraction > 0.55);
  const int text_color = dark_text ? 16 : 231;
  return fmt::format("\x1b[48;2;{};{};{};38;5;{}m{}\x1b[0m", back.red, back.green, back.blue,
                     text_color, text);
}

std::string nothing(const Sheet& sheet) { return sheet.options.unicode ? "·" : "."; }

std::string wide_cell(const Sheet& sheet, double weight, int width) {
  std::string text = short_weight(weight);
  if (text.empty()) text = nothing(sheet);
  if (sheet.options.color) return painted(sheet, weight, centred(text, width));
  // The shade fills the space before the number.
  return pad_left(repeat(shade(sheet, weight), std::max(1, width - 3)) + pad_left(text, 3), width);
}

std::string narrow_cell(const Sheet& sheet, double weight) {
  if (!std::isfinite(weight)) return "??";
  if (!sheet.options.color) return repeat(shade(sheet, weight), kNarrowCell);
  const std::string text = short_weight(weight);
  const bool two_digits = text.size() == 3 && text.front() == '.';
  return painted(sheet, weight, two_digits ? text.substr(1) : repeat(" ", kNarrowCell));
}

// Prints a map with headings and numbers that fit into the width.
void append_wide(std::string& out, const Sheet& sheet, int cell) {
  const std::string gap = sheet.options.color ? "" : " ";
  std::string heading = repeat(" ", sheet.label_width + 1);
  for (const std::string& token : sheet.source) heading += gap + centred(token, cell);
  end_line(out, heading);
  for (int64_t row = 0; row < sheet.rows; ++row) {
    std::string line = pad_left(sheet.target[static_cast<size_t>(row)], sheet.label_width) + " ";
    for (int64_t column = 0; column < sheet.columns; ++column) {
      line += gap + wide_cell(sheet, sheet.grid.at(row, column), cell);
    }
    end_line(out, line);
  }
}

// Prints the source tokens from top to bottom, each in its column, ending on the same line.
void append_upright(std::string& out, const Sheet& sheet, int64_t first, int64_t last) {
  std::vector<std::vector<Cluster>> stacks;
  size_t height = 0;
  for (int64_t column = first; column < last; ++column) {
    const std::string text =
        cut(sheet.source[static_cast<size_t>(column)], kMaximumHeading, sheet.options.unicode);
    stacks.push_back(clusters(text));
    height = std::max(height, stacks.back().size());
  }
  for (size_t level = 0; level < height; ++level) {
    std::string line = repeat(" ", sheet.label_width + 1);
    for (const std::vector<Cluster>& stack : stacks) {
      const size_t blank = height - stack.size();
      line += pad_right(level < blank ? "" : stack[level - blank].bytes, kNarrowCell);
    }
    end_line(out, line);
  }
}

// Names the strongest of all source tokens, whether shown or not.
std::string strongest(const Sheet& sheet, int64_t row, int width) {
  int64_t best = -1;
  for (int64_t column = 0; column < sheet.grid.columns; ++column) {
    const double weight = sheet.grid.at(row, column);
    const bool first = best < 0 && std::isfinite(weight);
    if (first || (best >= 0 && weight > sheet.grid.at(row, best))) best = column;
  }
  if (best < 0) return "";
  const std::string value = short_weight(sheet.grid.at(row, best));
  if (value.empty()) return "";
  const std::string& token = sheet.alignment.source[static_cast<size_t>(best)];
  return fmt::format("{} {}", value, cut(visible_token(token), width, sheet.options.unicode));
}

void append_panels(std::string& out, const Sheet& sheet) {
  const int name = std::max(1, widest(sheet.source));
  const int name_columns = 2 + 5 + name;
  const int room = sheet.options.width - sheet.label_width - 1;
  const bool named = room - name_columns >= kNarrowestMap;
  const int64_t per_panel = (named ? room - name_columns : room) / kNarrowCell;
  for (int64_t first = 0; first < sheet.columns; first += per_panel) {
    const int64_t last = std::min(sheet.columns, first + per_panel);
    if (sheet.columns > per_panel) {
      end_line(out, cut(fmt::format("source {} to {} of {}", first + 1, last, sheet.columns),
                        sheet.options.width, sheet.options.unicode));
    }
    append_upright(out, sheet, first, last);
    for (int64_t row = 0; row < sheet.rows; ++row) {
      std::string line = pad_left(sheet.target[static_cast<size_t>(row)], sheet.label_width) + " ";
      for (int64_t column = first; column < last; ++column) {
        line += narrow_cell(sheet, sheet.grid.at(row, column));
      }
      end_line(out, named ? line + "  " + strongest(sheet, row, name) : line);
    }
    if (last < sheet.columns) out += '\n';
  }
}

void append_legend(std::string& out, const Sheet& sheet) {
  constexpr int kWidth = 20;
  const int indent = std::min(sheet.label_width + 2, sheet.options.width - kWidth);
  std::string line = repeat(" ", indent) + "0 ";
  constexpr int kSteps = 8;
  for (int step = 0; step <= kSteps; ++step) {
    const double weight = sheet.end * step / kSteps;
    line += sheet.options.color ? painted(sheet, weight, " ") : shade(sheet, weight);
  }
  out += '\n' + fmt::format("{} {:g}\n", line, sheet.end);
}

int widest_value(const Sheet& sheet) {
  size_t width = 3;
  for (int64_t row = 0; row < sheet.rows; ++row) {
    for (int64_t column = 0; column < sheet.columns; ++column) {
      width = std::max(width, short_weight(sheet.grid.at(row, column)).size());
    }
  }
  return static_cast<int>(width) + 1;
}

}  // namespace

std::string alignment_text(const Alignment& alignment, const TextOptions& options) {
  if (options.width < 20)
    fail("[alignment_text] width is {}; it must be at least 20", options.width);
  if (options.maximum_tokens < 1) {
    fail("[alignment_text] maximum_tokens is {}; it must be at least 1", options.maximum_tokens);
  }
  Sheet sheet{.alignment = alignment,
              .options = options,
              .grid = checked_grid(alignment),
              .end = 1,
              .source = {},
              .target = {},
              .label_width = 0,
              .rows = 0,
              .columns = 0};
  sheet.end = scale_end(sheet.grid);
  sheet.source = shown_labels(alignment.source, options);
  sheet.target = shown_labels(alignment.target, options);
  sheet.rows = static_cast<int64_t>(sheet.target.size());
  sheet.columns = static_cast<int64_t>(sheet.source.size());
  sheet.label_width = std::min(widest(sheet.target), options.width / 4);
  for (std::string& token : sheet.target) token = cut(token, sheet.label_width, options.unicode);
  for (std::string& token : sheet.source) token = cut(token, options.width / 4, options.unicode);

  std::string out;
  if (!alignment.title.empty()) {
    end_line(out, cut(visible_text(alignment.title), options.width, options.unicode));
  }
  if (sheet.rows == 0 || sheet.columns == 0) return out + "no weights: nothing to show\n";
  const int heading = widest(sheet.source);
  const int cell = std::max(widest_value(sheet), heading);
  const int64_t across = sheet.columns * (cell + (options.color ? 0 : 1)) + sheet.label_width + 1;
  if (heading <= kMaximumHeading && across <= options.width) {
    append_wide(out, sheet, cell);
  } else {
    append_panels(out, sheet);
  }
  append_legend(out, sheet);
  if (sheet.rows < sheet.grid.rows || sheet.columns < sheet.grid.columns) {
    end_line(out, fmt::format("the first {} of {} source and {} of {} target tokens", sheet.columns,
                              sheet.grid.columns, sheet.rows, sheet.grid.rows));
  }
  return out;
}

}  // namespace attend
