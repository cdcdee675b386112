#include <algorithm>
#include <iterator>
#include <string_view>

#include "attend/base/error.h"
#include "attend/data/frames-inl.h"
#include "attend/text/molecule.h"

namespace attend {
namespace {

using at::Tensor;

// Most drugs contain no others; all others share one number.
constexpr std::string_view common_elements[] = {"C",  "N", "O", "S", "P",  "F", "Cl",
                                                "Br", "I", "B", "H", "Si", "Na"};
constexpr int64_t max_counted = 4;  // hydrogens, and bonds; higher counts are clipped
constexpr int64_t max_bonds = 8;
constexpr int64_t bond_types = 5;

// Offsets of the numbers of an atom. They do not depend on the spelling of the SMILES.
constexpr int64_t hydrogens_place = std::ssize(common_elements) + 1;
constexpr int64_t bonds_place = hydrogens_place + max_counted + 1;
constexpr int64_t aromatic_place = bonds_place + max_counted + 1;
constexpr int64_t ring_place = aromatic_place + 1;
constexpr int64_t charge_place = ring_place + 1;
constexpr int64_t chirality_place = charge_place + 1;
constexpr int64_t isotope_place = chirality_place + 1;
constexpr int64_t steps_place = isotope_place + 1;
constexpr int64_t kinds_place = steps_place + max_bonds;
constexpr int64_t frame_depth = kinds_place + max_bonds;

void write_atom(const Atom& atom, float* frame) {
  const auto element =
      std::find(std::begin(common_elements), std::end(common_elements), atom.element);
  frame[element - std::begin(common_elements)] = 1;
  frame[hydrogens_place + std::min(atom.hydrogens, max_counted)] = 1;
  frame[aromatic_place] = atom.is_aromatic ? 1 : 0;
  frame[ring_place] = atom.in_ring ? 1 : 0;
  frame[charge_place] = static_cast<float>(atom.charge);
  frame[chirality_place] = atom.chirality.empty() ? 0 : 1;
  frame[isotope_place] = atom.isotope == 0 ? 0 : 1;
}

// Dative and any bonds are read as single bonds.
int64_t kind_of(const Bond& bond) {
  const BondType type = bond.type > BondType::aromatic ? BondType::single : bond.type;
  return 1 + static_cast<int64_t>(type) + (bond.in_ring ? bond_types : 0);
}

class MoleculeFrames : public FrameReader {
 public:
  FileForm form(const std::string& /*name*/) override { return {}; }

  Tensor read(const std::string& name) override {
    const Molecule molecule = read_molecule(name);
    const auto count = std::ssize(molecule.atoms);
    Tensor frames = at::zeros({count, frame_depth}, at::kFloat);
    const auto frame = [&](int64_t atom) { return frames.data_ptr<float>() + atom * frame_depth; };
    std::vector<int64_t> bonds(molecule.atoms.size());
    const auto bind = [&](int64_t from, int64_t to, const Bond& bond) {
      int64_t& place = bonds[static_cast<size_t>(from)];
      if (place == max_bonds)
        fail("SMILES {}: atom {}, {}, has over {} bonds; set data.source_units to smiles",
             in_quotes(name), from + 1, molecule.atoms[static_cast<size_t>(from)].text, max_bonds);
      frame(from)[steps_place + place] = static_cast<float>(to - from);
      frame(from)[kinds_place + place] = static_cast<float>(kind_of(bond));
      ++place;
    };
    for (const Bond& bond : molecule.bonds) {
      bind(bond.first, bond.second, bond);
      bind(bond.second, bond.first, bond);
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto atom = static_cast<size_t>(i);
      write_atom(molecule.atoms[atom], frame(i));
      frame(i)[bonds_place + std::min(bonds[atom], max_counted)] = 1;
    }
    return frames;
  }
};

std::vector<std::string> atom_names(const std::string& source, const FrameConfig& /*config*/,
                                    int64_t count) {
  std::vector<std::string> names;
  for (const Atom& atom : read_molecule(source).atoms) names.push_back(atom.text);
  names.resize(static_cast<size_t>(count));
  return names;
}

}  // namespace

SourceKind molecule_kind() {
  return {.name = "molecule",
          .has_colours = false,
          .names = nullptr,
          .placed = nullptr,
          .measure = [](const std::string&, FrameConfig&) {},
          .shape = [](const FrameConfig&) -> SourceShape {
            return NeighbourForm{frame_depth, max_bonds, 1 + 2 * bond_types};
          },
          .reader = [](const FrameConfig&) -> std::unique_ptr<FrameReader> {
            return std::make_unique<MoleculeFrames>();
          },
          .frame_names = atom_names,
          .picture = nullptr};
}

}  // namespace attend
