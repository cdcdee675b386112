#include "attend/pictures/family_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr double kTreeRow = 13;
constexpr double kTreeFont = 10.5;
constexpr double kTreeYear = 74;    // width of a year
constexpr double kTreeIndent = 11;  // between a member and its child of the same year
constexpr double kTreeLeft = 14;
constexpr double kTreeTop = 46;  // legend and years

// Distinguishable by lightness as well as by hue, for colour-blind readers.
constexpr std::array<std::string_view, 8> kTreeLight = {"#0b62c4", "#d1580f", "#1a8a5a", "#8e44ad",
                                                        "#a67c00", "#57606a", "#b0245c", "#0f7f8f"};
constexpr std::array<std::string_view, 8> kTreeDark = {"#5aa9ff", "#ff9d5c", "#4fd19a", "#cf9bf0",
                                                       "#e3c34a", "#aab4bf", "#ff7eb0", "#5fd3e3"};

std::string tree_colors(const std::array<std::string_view, 8>& colors) {
  std::string rules;
  for (size_t i = 0; i < colors.size(); ++i) rules += fmt::format(".k{}{{fill:{}}}", i, colors[i]);
  return rules;
}

void check(const FamilyTree& tree) {
  if (tree.members.empty()) fail("[family_tree] there is nothing to draw; give members");
  for (const FamilyTree::Member& one : tree.members) {
    if (one.kind >= std::min(tree.kinds.size(), kTreeLight.size()))
      fail("[family_tree] {} is of kind {}; there are {} kinds, and {} colours", one.name, one.kind,
           tree.kinds.size(), kTreeLight.size());
    if (!one.parent) continue;
    if (*one.parent >= tree.members.size())
      fail("[family_tree] {} has parent {}, but there are {} members", one.name, *one.parent,
           tree.members.size());
    if (tree.members[*one.parent].year > one.year)
      fail("[family_tree] {} of {} has a parent of {}; parents are earlier", one.name, one.year,
           tree.members[*one.parent].year);
  }
}

// Position of each member in the picture.
struct TreeLayout {
  struct Position {
    double x = 0, y = 0;
  };
  std::vector<Position> positions;
  size_t rows = 0;
  int first_year = 0;

  explicit TreeLayout(const FamilyTree& tree) : positions(tree.members.size()) {
    first_year = std::min_element(tree.members.begin(), tree.members.end(), [](auto& a, auto& b) {
                   return a.year < b.year;
                 })->year;
    place_children(tree, {});
    if (rows != tree.members.size())
      fail("[family_tree] {} members descend from themselves", tree.members.size() - rows);
  }

  double year_x(int year) const { return kTreeLeft + (year - first_year) * kTreeYear; }

 private:
  // Places members with that parent below it, the oldest first, each followed by its descendants.
  void place_children(const FamilyTree& tree, std::optional<size_t> parent) {
    std::vector<size_t> children;
    for (size_t i = 0; i < tree.members.size(); ++i)
      if (tree.members[i].parent == parent) children.push_back(i);
    std::stable_sort(children.begin(), children.end(), [&](size_t a, size_t b) {
      return tree.members[a].year < tree.members[b].year;
    });
    for (const size_t child : children) {
      double x = year_x(tree.members[child].year);
      if (parent) x = std::max(x, positions[*parent].x + kTreeIndent);
      positions[child] = {x, kTreeTop + (static_cast<double>(rows++) + 0.5) * kTreeRow};
      place_children(tree, child);
    }
  }
};

std::string tree_legend(const FamilyTree& tree) {
  std::string out = fmt::format("<g class=\"text\" font-size=\"{:g}\">\n", kTreeFont);
  double x = kTreeLeft;
  for (size_t i = 0; i < tree.kinds.size(); ++i) {
    out += fmt::format(
        "<circle class=\"k{}\" cx=\"{:g}\" cy=\"13\" r=\"4\"/><text x=\"{:g}\" "
        "y=\"17\">{}</text>\n",
        i, x, x + 8, escape_markup(tree.kinds[i]));
    x += 24 + estimated_width(tree.kinds[i], kTreeFont);
  }
  return out + "</g>\n";
}

std::string tree_years(const FamilyTree& tree, const TreeLayout& layout, double bottom) {
  int last = layout.first_year;
  for (const FamilyTree::Member& one : tree.members) last = std::max(last, one.year);
  std::string out = fmt::format("<g class=\"soft\" font-size=\"{:g}\">\n", kTreeFont);
  for (int year = layout.first_year; year <= last; ++year)
    out += fmt::format("<text x=\"{:g}\" y=\"36\">{}</text>\n", layout.year_x(year) - 4, year);
  out += "</g>\n<path class=\"line\" fill=\"none\" stroke-opacity=\"0.35\" d=\"";
  for (int year = layout.first_year; year <= last; ++year)
    out += fmt::format("M{:g} 40V{:g}", layout.year_x(year), bottom);
  return out + "\"/>\n";
}

}  // namespace

std::string family_tree_svg(const FamilyTree& tree) {
  check(tree);
  const TreeLayout layout(tree);
  std::string branches, members;
  double width = 0;
  for (size_t i = 0; i < tree.members.size(); ++i) {
    const FamilyTree::Member& one = tree.members[i];
    const auto [x, y] = layout.positions[i];
    if (one.parent) {
      const TreeLayout::Position& from = layout.positions[*one.parent];
      branches += fmt::format("M{:g} {:g}V{:g}H{:g}", from.x, from.y + 4, y, x - 4);
    }
    members += fmt::format(
        "<circle class=\"k{}\" cx=\"{:g}\" cy=\"{:g}\" r=\"4\"/><text x=\"{:g}\" "
        "y=\"{:g}\">{}</text>\n",
        one.kind, x, y, x + 7, y + 0.36 * kTreeFont, escape_markup(one.name));
    width = std::max(width, x + 7 + estimated_width(one.name, kTreeFont));
  }
  const double bottom = kTreeTop + static_cast<double>(layout.rows) * kTreeRow;
  return svg_start(width + kTreeLeft, bottom + 8,
                   fmt::format("{} mechanisms by year", tree.members.size())) +
         style_element(tree_colors(kTreeLight), tree_colors(kTreeDark)) +
         "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n" + tree_legend(tree) +
         tree_years(tree, layout, bottom) +
         fmt::format("<path class=\"line\" fill=\"none\" d=\"{}\"/>\n", branches) +
         fmt::format("<g class=\"text\" font-size=\"{:g}\">\n", kTreeFont) + members +
         "</g>\n</svg>\n";
}

}  // namespace attend
