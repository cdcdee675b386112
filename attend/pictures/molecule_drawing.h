#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attend {

// A molecule, such as a map of weights is drawn on.
struct MoleculeDrawing {
  struct Atom {
    std::string label;
    double weight = 0;  // 0 or more; the strongest colour is that of the largest, bonds' too
  };
  struct Bond {
    int64_t first = 0, second = 0;  // atoms
    int64_t lines = 1;
    bool has_dashes = false;  // beside the last line a dashed one, of an aromatic bond
    // Of the half at each of its atoms, as an atom's.
    double first_weight = 0, second_weight = 0;
  };
  std::vector<Atom> atoms;
  std::vector<Bond> bonds;
  std::string title = {};  // may be empty
};

inline constexpr int64_t most_drawn_atoms = 400;

struct DrawnPlace {
  double x = 0, y = 0;
};

// Places for the atoms, about 1 apart where a bond is: such that distances fit the numbers of bonds
// between atoms (stress majorisation, Gansner et al. 2004). Parts without a bond between them stand
// side by side.
std::vector<DrawnPlace> molecule_layout(const MoleculeDrawing& molecule);

// A self-contained SVG document: light, or dark where the viewer prefers that. Error where there
// are over most_drawn_atoms atoms.
std::string molecule_svg(const MoleculeDrawing& molecule);

}  // namespace attend
