#include <algorithm>

#include "attend/data/source_kind.h"
#include "attend/text/molecule.h"
#include "tests/fuzz/fuzz.h"

namespace {

// The same molecule with its atoms in reverse order.
attend::Molecule reversed(const attend::Molecule& molecule) {
  attend::Molecule other = molecule;
  std::reverse(other.atoms.begin(), other.atoms.end());
  const auto last = static_cast<int64_t>(molecule.atoms.size()) - 1;
  for (attend::Bond& bond : other.bonds) {
    const int64_t first = bond.first;
    bond.first = last - bond.second;
    bond.second = last - first;
    if (bond.type == attend::BondType::dative) bond.direction = bond.direction == '>' ? '<' : '>';
  }
  return other;
}

}  // namespace

// Atoms are in the order of the text, bonds join two atoms, frames have the same atoms, and the key
// does not depend on the order.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  const std::string text(fuzz::text(data, size));
  return fuzz::accept_errors(
      [&] {
        const Molecule molecule = read_molecule(text);
        size_t place = 0;
        for (const Atom& atom : molecule.atoms) {
          place = text.find(atom.text, place);
          fuzz::expect(place != std::string::npos && atom.hydrogens >= 0);
          place += atom.text.size();
        }
        const auto count = static_cast<int64_t>(molecule.atoms.size());
        for (const Bond& bond : molecule.bonds) {
          fuzz::expect(0 <= bond.first && bond.first < bond.second && bond.second < count);
          const bool ring_atoms = molecule.atoms[static_cast<size_t>(bond.first)].in_ring &&
                                  molecule.atoms[static_cast<size_t>(bond.second)].in_ring;
          fuzz::expect(!bond.in_ring || ring_atoms);
        }
        if (count <= 24) fuzz::expect(canonical_key(molecule) == canonical_key(reversed(molecule)));
        const at::Tensor frames = source_kind("molecule")->reader({})->read(text);
        fuzz::expect(frames.size(0) == count && frames.isfinite().all().item<bool>());
      },
      "SMILES ");
}
