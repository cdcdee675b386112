#include <algorithm>
#include <map>
#include <set>

#include "attend/text/molecule-inl.h"

namespace attend::internal {
namespace {

constexpr size_t max_fused_ring = 24;  // atoms of a ring that is combined with others
constexpr size_t max_fused_rings = 6;  // rings that are combined
constexpr size_t max_subsystems = 100000;

// Number of electrons that an atom can give to a ring.
struct Donation {
  bool is_candidate = false;
  int64_t least = 0, maximum = 0;
};

// RDKit's aromaticity model, according to its documentation: an atom of a ring gives 0, 1 or 2
// electrons; a ring or fused rings with 4n+2 electrons are aromatic.
class AromaticSearch {
 public:
  explicit AromaticSearch(Molecule& molecule)
      : molecule_(molecule), bonds_of_(bonds_of_atoms(molecule)) {}

  // Returns whether the rings could be searched. Requires single and double bonds.
  bool search() {
    const auto rings = relevant_rings(molecule_);
    if (!rings) return false;
    for (size_t atom = 0; atom < molecule_.atoms.size(); ++atom)
      donations_.push_back(donation_of(atom));
    aromatic_bonds_.resize(molecule_.bonds.size());
    for (const Ring& ring : *rings)
      if (std::all_of(ring.atoms.begin(), ring.atoms.end(),
                      [&](size_t atom) { return donations_[atom].is_candidate; }))
        rings_.push_back(ring);
    for (size_t ring = 0; ring < rings_.size(); ++ring) check({ring});
    check_fused();
    for (size_t bond = 0; bond < aromatic_bonds_.size(); ++bond)
      if (aromatic_bonds_[bond] && lines_of(molecule_.bonds[bond].type) <= 2)
        molecule_.bonds[bond].type = BondType::aromatic;
    return true;
  }

 private:
  using Subsystem = std::vector<size_t>;  // indices of rings, sorted

  const Atom& atom_of(size_t atom) const { return molecule_.atoms[atom]; }

  int64_t valence_of(size_t atom) const {
    int64_t sum = atom_of(atom).hydrogens;
    for (const size_t bond : bonds_of_[atom]) sum += taken_by(molecule_.bonds[bond], atom);
    return sum;
  }

  static int64_t usual_valence(int64_t number) {
    const std::vector<int64_t> all = usual_valences(number);
    return all.empty() ? -1 : all.front();
  }

  // Unpaired electrons of an atom in brackets, which state its hydrogens; 0 without brackets.
  int64_t radicals_of(size_t atom) const {
    const Atom& own = atom_of(atom);
    if (own.text.front() != '[') return 0;
    const int64_t valence = valence_of(atom);
    for (const int64_t usual : usual_valences(atomic_number(own) - own.charge))
      if (usual >= valence) return usual - valence;
    return 0;
  }

  struct MultipleBonds {
    int64_t count = 0;
    bool in_ring = false, outside = false, takes_electron = false, is_threefold = false;
  };

  MultipleBonds multiple_bonds_of(size_t atom) const {
    MultipleBonds found;
    const int64_t own = outer_electrons(atomic_number(atom_of(atom)));
    for (const size_t index : bonds_of_[atom]) {
      const Bond& bond = molecule_.bonds[index];
      if (bond.type == BondType::aromatic || lines_of(bond.type) < 2) continue;
      ++found.count;
      (bond.in_ring ? found.in_ring : found.outside) = true;
      if (bond.in_ring) continue;
      const Atom& other = atom_of(other_end(bond, atom));
      const int64_t outer = outer_electrons(atomic_number(other));
      found.takes_electron |=
          outer > own || (outer == own && atomic_number(other) < atomic_number(atom_of(atom)));
    }
    return found;
  }

  bool can_be_aromatic(size_t atom, const MultipleBonds& multiple) const {
    const Atom& own = atom_of(atom);
    const int64_t number = atomic_number(own);
    if (!own.in_ring || multiple.count > 1) return false;
    if (number > 18 && number != 34 && number != 52) return false;
    if (number == 0) return true;
    const int64_t usual = usual_valence(number - own.charge);
    if (usual > 0 && valence_of(atom) > usual) return false;
    return radicals_of(atom) == 0 || (number == 6 && own.charge == 0);
  }

  // Electrons left by bonds in the ring and to other atoms; below 0: the atom cannot give any.
  int64_t free_electrons(size_t atom) const {
    const Atom& own = atom_of(atom);
    const int64_t number = atomic_number(own), usual = usual_valence(number);
    int64_t degree = own.hydrogens, bound = 0;
    for (const size_t bond : bonds_of_[atom]) degree += molecule_.bonds[bond].type != BondType::any;
    for (const size_t bond : bonds_of_[atom]) bound += taken_by(molecule_.bonds[bond], atom) - 1;
    if (usual <= 1 || degree > 3) return -1;
    const int64_t pairs = std::max<int64_t>(outer_electrons(number) - usual - own.charge, 0);
    const int64_t electrons = usual - degree + pairs - radicals_of(atom);
    return electrons > 1 && bound > 1 ? 1 : electrons;
  }

  Donation donation_of(size_t atom) const {
    const MultipleBonds multiple = multiple_bonds_of(atom);
    if (!can_be_aromatic(atom, multiple)) return {};
    if (atomic_number(atom_of(atom)) == 0)
      return multiple.in_ring ? Donation{true, 1, 1} : Donation{true, 1, 2};
    const int64_t electrons = free_electrons(atom);
    if (electrons < 0) return {};
    if (electrons == 0) {
      if (multiple.outside) return {true, 0, 0};
      return multiple.in_ring ? Donation{true, 1, 1} : Donation{};
    }
    if (electrons == 1) {
      if (multiple.outside)
        return multiple.takes_electron ? Donation{true, 0, 0} : Donation{true, 1, 1};
      if (multiple.in_ring) return {true, 1, 1};
      return atom_of(atom).charge == 1 ? Donation{true, 0, 0} : Donation{};
    }
    const int64_t left = electrons - (multiple.outside && multiple.takes_electron ? 1 : 0);
    return left % 2 == 1 ? Donation{true, 1, 1} : Donation{true, 2, 2};
  }

  // Marks the rings if their electrons make them aromatic together. An inner atom, in three or more
  // rings, gives no electrons. A bond of two rings is not part of the perimeter.
  void check(const Subsystem& rings) {
    std::map<size_t, int64_t> atoms, bonds;
    for (const size_t ring : rings) {
      for (const size_t atom : rings_[ring].atoms) ++atoms[atom];
      for (const size_t bond : rings_[ring].bonds) ++bonds[bond];
    }
    int64_t least = 0, maximum = 0, open = 0;
    for (const auto& [atom, count] : atoms) {
      if (count > 2) continue;
      least += donations_[atom].least;
      maximum += donations_[atom].maximum;
      open += donations_[atom].least < donations_[atom].maximum ? 1 : 0;
    }
    if (open > 1) return;
    bool is_aromatic = maximum == 2;
    for (int64_t electrons = std::max<int64_t>(least, 6); electrons <= maximum; ++electrons)
      is_aromatic |= electrons % 4 == 2;
    if (!is_aromatic) return;
    for (const auto& [bond, count] : bonds) {
      if (count > 1) continue;
      aromatic_bonds_[bond] = true;
      molecule_.atoms[first_of(molecule_.bonds[bond])].is_aromatic = true;
      molecule_.atoms[second_of(molecule_.bonds[bond])].is_aromatic = true;
    }
  }

  // Returns for each ring the rings that share exactly one bond with it.
  std::vector<std::vector<size_t>> fused_rings() const {
    std::map<size_t, std::vector<size_t>> by_bond;
    for (size_t ring = 0; ring < rings_.size(); ++ring)
      if (rings_[ring].atoms.size() <= max_fused_ring)
        for (const size_t bond : rings_[ring].bonds) by_bond[bond].push_back(ring);
    std::vector<std::map<size_t, int64_t>> shared(rings_.size());
    for (const auto& [bond, rings] : by_bond)
      for (const size_t a : rings)
        for (const size_t b : rings)
          if (a != b) ++shared[a][b];
    std::vector<std::vector<size_t>> fused(rings_.size());
    for (size_t ring = 0; ring < rings_.size(); ++ring)
      for (const auto& [other, bonds] : shared[ring])
        if (bonds == 1) fused[ring].push_back(other);
    return fused;
  }

  bool is_complete(const Subsystem& rings) const {
    return std::all_of(rings.begin(), rings.end(), [&](size_t ring) {
      return std::all_of(rings_[ring].bonds.begin(), rings_[ring].bonds.end(),
                         [&](size_t bond) { return aromatic_bonds_[bond]; });
    });
  }

  void check_fused() {
    const std::vector<std::vector<size_t>> fused = fused_rings();
    std::vector<bool> seen(rings_.size());
    for (size_t root = 0; root < rings_.size(); ++root) {
      if (seen[root]) continue;
      Subsystem system = {root};
      seen[root] = true;
      for (size_t i = 0; i < system.size(); ++i)
        for (const size_t next : fused[system[i]])
          if (!seen[next]) {
            seen[next] = true;
            system.push_back(next);
          }
      check_system(system, fused);
    }
  }

  // Checks every connected set of two rings, then of three, up to the bounds.
  void check_system(const Subsystem& system, const std::vector<std::vector<size_t>>& fused) {
    std::set<Subsystem> current;
    for (const size_t ring : system) current.insert({ring});
    size_t checked = 0;
    for (size_t size = 2; size <= max_fused_rings && !is_complete(system); ++size) {
      std::set<Subsystem> larger;
      for (const Subsystem& rings : current)
        for (const size_t ring : rings)
          for (const size_t next : fused[ring]) {
            if (std::binary_search(rings.begin(), rings.end(), next)) continue;
            Subsystem more = rings;
            more.insert(std::lower_bound(more.begin(), more.end(), next), next);
            larger.insert(std::move(more));
            if (++checked > max_subsystems) return;
          }
      for (const Subsystem& rings : larger) check(rings);
      current = std::move(larger);
    }
  }

  Molecule& molecule_;
  AtomBonds bonds_of_;
  std::vector<Donation> donations_;  // per atom
  std::vector<Ring> rings_;          // only rings in which all atoms are candidates
  std::vector<bool> aromatic_bonds_;
};

}  // namespace

void perceive_aromaticity(Molecule& molecule) {
  Molecule bonds = molecule;
  write_double_bonds(bonds, bonds_of_atoms(bonds));
  if (AromaticSearch(bonds).search()) molecule = std::move(bonds);
}

}  // namespace attend::internal
