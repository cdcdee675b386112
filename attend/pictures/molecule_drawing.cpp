#include "attend/pictures/molecule_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "attend/base/error.h"
#include "attend/pictures/markup-inl.h"
#include "attend/pictures/theme-inl.h"
#include "attend/pictures/visible_token-inl.h"

namespace attend {
namespace {

constexpr double bond_length = 42;  // pixels
constexpr double atom_radius = 13;
constexpr double line_gap = 4;
constexpr double shade_width = 14;
constexpr double margin = 24;
constexpr double atom_font = 13;
constexpr double title_height = 24;

struct MoleculePicture {
  std::vector<DrawnPoint> places;  // in pixels
  double width = 0, height = 0;
};

MoleculePicture picture_of(const MoleculeDrawing& molecule) {
  MoleculePicture picture{molecule_layout(molecule)};
  double left = 0, top = 0, right = 0, bottom = 0;
  for (const DrawnPoint& place : picture.places) {
    left = std::min(left, place.x);
    right = std::max(right, place.x);
    top = std::min(top, place.y);
    bottom = std::max(bottom, place.y);
  }
  const double edge = margin + atom_radius, above = molecule.title.empty() ? 0 : title_height;
  for (DrawnPoint& place : picture.places)
    place = {edge + bond_length * (place.x - left), edge + above + bond_length * (place.y - top)};
  picture.width = std::max(bond_length * (right - left) + 2 * edge,
                           estimated_width(visible_text(molecule.title), atom_font) + 2 * margin);
  picture.height = bond_length * (bottom - top) + 2 * edge + above;
  return picture;
}

// Parallel lines; a dashed one comes last.
std::string bond_lines(const MoleculeDrawing::Bond& bond, const MoleculePicture& picture) {
  const DrawnPoint& from = picture.places[static_cast<size_t>(bond.first)];
  const DrawnPoint& to = picture.places[static_cast<size_t>(bond.second)];
  const double length = std::max(std::hypot(to.x - from.x, to.y - from.y), 1e-6);
  const double across_x = -(to.y - from.y) / length, across_y = (to.x - from.x) / length;
  const int64_t lines = bond.lines + (bond.has_dashes ? 1 : 0);
  std::string out;
  for (int64_t i = 0; i < lines; ++i) {
    const double shift = line_gap * (static_cast<double>(i) - static_cast<double>(lines - 1) / 2);
    fmt::format_to(std::back_inserter(out), "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"{}/>\n",
                   from.x + shift * across_x, from.y + shift * across_y, to.x + shift * across_x,
                   to.y + shift * across_y, i >= bond.lines ? " stroke-dasharray=\"4 3\"" : "");
  }
  return out;
}

double strength_of(double weight, double largest) {
  return largest > 0 && std::isfinite(weight) ? std::max(weight / largest, 0.0) : 0;
}

// Drawn under the lines, from the atom to the middle of the bond.
std::string half_shade(const DrawnPoint& from, const DrawnPoint& to, double weight,
                       double largest) {
  const double strength = strength_of(weight, largest);
  if (strength == 0) return "";
  return fmt::format(
      "<path class=\"shade\" stroke-opacity=\"{:.3f}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\">"
      "<title>{:.3g}</title></path>\n",
      strength, from.x, from.y, (from.x + to.x) / 2, (from.y + to.y) / 2, weight);
}

std::string bond_shades(const MoleculeDrawing::Bond& bond, const MoleculePicture& picture,
                        double largest) {
  const DrawnPoint& first = picture.places[static_cast<size_t>(bond.first)];
  const DrawnPoint& second = picture.places[static_cast<size_t>(bond.second)];
  return half_shade(first, second, bond.first_weight, largest) +
         half_shade(second, first, bond.second_weight, largest);
}

double largest_weight(const MoleculeDrawing& molecule) {
  double largest = 0;
  const auto take = [&](double weight) {
    if (std::isfinite(weight)) largest = std::max(largest, weight);
  };
  for (const MoleculeDrawing::Atom& atom : molecule.atoms) take(atom.weight);
  for (const MoleculeDrawing::Bond& bond : molecule.bonds) {
    take(bond.first_weight);
    take(bond.second_weight);
  }
  return largest;
}

// Drawn over the lines, which then end at its edge.
std::string atom_mark(const MoleculeDrawing::Atom& atom, const DrawnPoint& place, double largest) {
  const double strength = strength_of(atom.weight, largest);
  const std::string label = shorten(visible_token(atom.label), 12);
  const double width = estimated_width(label, atom_font);
  const double font = atom_font * std::min(1.0, 2 * (atom_radius - 1) / std::max(width, 1.0));
  return fmt::format(
      "<circle class=\"page line\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2:g}\"/>"
      "<circle class=\"mark\" fill-opacity=\"{3:.3f}\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2:g}\">"
      "<title>{4}: {5:.3g}</title></circle>"
      "<text class=\"text\" font-size=\"{6:.1f}\" x=\"{0:.1f}\" y=\"{7:.1f}\">{4}</text>\n",
      place.x, place.y, atom_radius, strength, escape_markup(label), atom.weight, font,
      place.y + 0.36 * font);
}

std::string molecule_style() {
  const auto rules = [](Scheme scheme) {
    return fmt::format(
        ".mark{{fill:{0}}}.shade{{stroke:{0};stroke-width:{2:g}px}}"
        ".bond{{stroke:{1};stroke-width:1.6px}}",
        hex(scale_color(scheme == Scheme::light ? 0.55 : 0.5, scheme)),
        hex(scale_color(scheme == Scheme::light ? 0.9 : 0.7, scheme)), shade_width);
  };
  return style_element(rules(Scheme::light), rules(Scheme::dark));
}

}  // namespace

std::string molecule_svg(const MoleculeDrawing& molecule) {
  if (std::ssize(molecule.atoms) > max_drawn_atoms)
    fail("the molecule has {} atoms; a drawing shows at most {}", molecule.atoms.size(),
         max_drawn_atoms);
  const MoleculePicture picture = picture_of(molecule);
  std::string out = svg_start(picture.width, picture.height,
                              fmt::format("a molecule of {} atoms", molecule.atoms.size())) +
                    molecule_style() +
                    "<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n";
  if (!molecule.title.empty())
    out += fmt::format("<text class=\"soft\" x=\"{:g}\" y=\"{:g}\">{}</text>\n", margin, margin - 4,
                       escape_markup(visible_text(molecule.title)));
  const double largest = largest_weight(molecule);
  for (const MoleculeDrawing::Bond& bond : molecule.bonds)
    out += bond_shades(bond, picture, largest);
  out += "<g class=\"bond\" fill=\"none\">\n";
  for (const MoleculeDrawing::Bond& bond : molecule.bonds) out += bond_lines(bond, picture);
  out += "</g>\n<g text-anchor=\"middle\">\n";
  for (size_t i = 0; i < molecule.atoms.size(); ++i)
    out += atom_mark(molecule.atoms[i], picture.places[i], largest);
  return out + "</g>\n</svg>\n";
}

}  // namespace attend
