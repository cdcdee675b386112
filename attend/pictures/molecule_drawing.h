#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// Molecule on which a map of weights is drawn.
struct MoleculeDrawing {
  struct Atom {
    std::string label;
    double weight = 0;  // 0 or more; the largest of all atoms and bonds has the strongest colour
  };
  struct Bond {
    int64_t first = 0, second = 0;  // atoms
    int64_t lines = 1;
    bool has_dashes = false;  // with an additional dashed line, for an aromatic bond
    // Weights of the halves at its atoms.
    double first_weight = 0, second_weight = 0;
  };
  std::vector<Atom> atoms;
  std::vector<Bond> bonds;
  std::string title = {};  // may be empty
};

inline constexpr int64_t max_drawn_atoms = 400;

struct DrawnPoint {
  double x = 0, y = 0;
};

// Returns positions of the atoms, with bonds about 1 long. Distances fit the numbers of bonds
// between atoms (stress majorisation, Gansner et al. 2004). Parts without a bond between them are
// placed side by side.
std::vector<DrawnPoint> molecule_layout(const MoleculeDrawing& molecule);

// Returns a self-contained SVG document: light, or dark if the viewer prefers that. Error if there
// are more than max_drawn_atoms atoms.
std::string molecule_svg(const MoleculeDrawing& molecule);

}  // namespace attend
