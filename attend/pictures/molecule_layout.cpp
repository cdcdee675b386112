#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attend/pictures/molecule_drawing.h"

namespace attend {
namespace {

constexpr int layout_rounds = 300;
constexpr double part_gap = 1.4;  // between parts

using Neighbourhood = std::vector<std::vector<size_t>>;

Neighbourhood neighbours_of(const MoleculeDrawing& molecule) {
  Neighbourhood all(molecule.atoms.size());
  for (const MoleculeDrawing::Bond& bond : molecule.bonds) {
    all[static_cast<size_t>(bond.first)].push_back(static_cast<size_t>(bond.second));
    all[static_cast<size_t>(bond.second)].push_back(static_cast<size_t>(bond.first));
  }
  return all;
}

// Number of bonds between an atom and every atom; -1 if they are not connected.
std::vector<int> bonds_from(size_t atom, const Neighbourhood& neighbours) {
  std::vector<int> bonds(neighbours.size(), -1);
  std::vector<size_t> reached = {atom};
  bonds[atom] = 0;
  for (size_t i = 0; i < reached.size(); ++i)
    for (const size_t next : neighbours[reached[i]]) {
      if (bonds[next] >= 0) continue;
      bonds[next] = bonds[reached[i]] + 1;
      reached.push_back(next);
    }
  return bonds;
}

// Distance of atoms in a zigzag chain with angles of 120 degrees.
double wanted_distance(int bonds) { return bonds == 1 ? 1 : 0.134 + 0.866 * bonds; }

// A connected part of a molecule.
class Fragment {
 public:
  explicit Fragment(std::vector<size_t> atoms, const Neighbourhood& neighbours)
      : atoms_(std::move(atoms)), places_(atoms_.size()) {
    for (const size_t atom : atoms_) {
      const std::vector<int> bonds = bonds_from(atom, neighbours);
      std::vector<int>& own = bonds_.emplace_back();
      for (const size_t other : atoms_) own.push_back(bonds[other]);
    }
  }

  // Turns the longest side to the horizontal, and the first atom to the upper left.
  void lay_out() {
    begin();
    for (int round = 0; round < layout_rounds; ++round) improve();
    turn();
  }

  const std::vector<size_t>& atoms() const { return atoms_; }
  const std::vector<DrawnPoint>& places() const { return places_; }

 private:
  size_t farthest(const std::vector<double>& distance) const {
    return static_cast<size_t>(std::max_element(distance.begin(), distance.end()) -
                               distance.begin());
  }

  // Starts with the longest path along x, and with distances from the atom farthest from its ends
  // along y.
  void begin() {
    std::vector<double> distance(bonds_[0].begin(), bonds_[0].end());
    const size_t left = farthest(distance);
    distance.assign(bonds_[left].begin(), bonds_[left].end());
    const size_t right = farthest(distance);
    for (size_t i = 0; i < atoms_.size(); ++i)
      distance[i] = std::min(bonds_[left][i], bonds_[right][i]);
    const size_t aside = farthest(distance);
    for (size_t i = 0; i < atoms_.size(); ++i) {
      // No two atoms start at the same position.
      const double shift = 0.1 * std::sin(static_cast<double>(7 * i + 1));
      places_[i].x = 0.5 * (bonds_[left][i] - bonds_[right][i]) + shift;
      places_[i].y = bonds_[aside][i] + 0.1 * std::cos(static_cast<double>(5 * i + 2));
    }
  }

  // Moves each atom in turn to the mean position that the others want for it, near ones weighted
  // most.
  void improve() {
    for (size_t i = 0; i < places_.size(); ++i) {
      DrawnPoint sum;
      double total = 0;
      for (size_t j = 0; j < places_.size(); ++j) {
        if (i == j) continue;
        const double wanted = wanted_distance(bonds_[i][j]), weight = 1 / (wanted * wanted);
        const double x = places_[i].x - places_[j].x, y = places_[i].y - places_[j].y;
        const double scale = wanted / std::max(std::hypot(x, y), 1e-6);
        sum.x += weight * (places_[j].x + scale * x);
        sum.y += weight * (places_[j].y + scale * y);
        total += weight;
      }
      if (total > 0) places_[i] = {sum.x / total, sum.y / total};
    }
  }

  void turn() {
    double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (const DrawnPoint& place : places_) {
      x += place.x / static_cast<double>(places_.size());
      y += place.y / static_cast<double>(places_.size());
    }
    for (const DrawnPoint& place : places_) {
      xx += (place.x - x) * (place.x - x);
      xy += (place.x - x) * (place.y - y);
      yy += (place.y - y) * (place.y - y);
    }
    const double angle = 0.5 * std::atan2(2 * xy, xx - yy);
    const double c = std::cos(angle), s = std::sin(angle);
    for (DrawnPoint& place : places_)
      place = {c * (place.x - x) + s * (place.y - y), c * (place.y - y) - s * (place.x - x)};
    const double across = places_[0].x > 1e-6 ? -1 : 1, down = places_[0].y > 1e-6 ? -1 : 1;
    for (DrawnPoint& place : places_) place = {across * place.x, down * place.y};
  }

  std::vector<size_t> atoms_;
  std::vector<std::vector<int>> bonds_;  // numbers of bonds between each two of them
  std::vector<DrawnPoint> places_;
};

}  // namespace

std::vector<DrawnPoint> molecule_layout(const MoleculeDrawing& molecule) {
  const Neighbourhood neighbours = neighbours_of(molecule);
  std::vector<DrawnPoint> places(neighbours.size());
  std::vector<bool> placed(neighbours.size());
  double left = 0;
  for (size_t atom = 0; atom < neighbours.size(); ++atom) {
    if (placed[atom]) continue;
    std::vector<size_t> own;
    const std::vector<int> bonds = bonds_from(atom, neighbours);
    for (size_t other = 0; other < bonds.size(); ++other)
      if (bonds[other] >= 0) own.push_back(other);
    Fragment part(std::move(own), neighbours);
    part.lay_out();
    double first = std::numeric_limits<double>::max(), last = std::numeric_limits<double>::lowest();
    for (const DrawnPoint& place : part.places()) {
      first = std::min(first, place.x);
      last = std::max(last, place.x);
    }
    for (size_t i = 0; i < part.atoms().size(); ++i) {
      placed[part.atoms()[i]] = true;
      places[part.atoms()[i]] = {part.places()[i].x - first + left, part.places()[i].y};
    }
    left += last - first + part_gap;
  }
  return places;
}

}  // namespace attend
