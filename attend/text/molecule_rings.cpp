#include <algorithm>
#include <map>
#include <set>

#include "attend/text/molecule-inl.h"

namespace attend::internal {
namespace {

constexpr size_t max_candidates = 20000;  // cycles per ring system
constexpr size_t max_paths = 1000;        // shortest paths between two atoms

// Marks the bonds in rings, which are the bonds that are not bridges, by depth-first search with
// low-link values (Tarjan 1974). Dative bonds do not close rings.
class BridgeSearch {
 public:
  explicit BridgeSearch(Molecule& molecule)
      : molecule_(molecule),
        bonds_of_(bonds_of_atoms(molecule)),
        order_(molecule.atoms.size(), -1),
        reaches_(molecule.atoms.size(), -1) {}

  void mark() {
    for (Atom& atom : molecule_.atoms) atom.in_ring = false;
    for (Bond& bond : molecule_.bonds) bond.in_ring = bond.type != BondType::dative;
    for (size_t atom = 0; atom < order_.size(); ++atom)
      if (order_[atom] < 0) search_from(atom);
    for (const Bond& bond : molecule_.bonds) {
      if (!bond.in_ring) continue;
      molecule_.atoms[first_of(bond)].in_ring = true;
      molecule_.atoms[second_of(bond)].in_ring = true;
    }
  }

 private:
  struct Visit {
    size_t atom;
    size_t came_by;   // bond; the number of bonds at the root
    size_t next = 0;  // index into the atom's bonds
  };

  void search_from(size_t root) {
    std::vector<Visit> path;
    begin(path, root, molecule_.bonds.size());
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == bonds_of_[visit.atom].size()) {
        end(path);
        continue;
      }
      const size_t bond = bonds_of_[visit.atom][visit.next++];
      if (bond == visit.came_by || molecule_.bonds[bond].type == BondType::dative) continue;
      const size_t other = other_end(molecule_.bonds[bond], visit.atom);
      if (order_[other] < 0)
        begin(path, other, bond);
      else
        reaches_[visit.atom] = std::min(reaches_[visit.atom], order_[other]);
    }
  }

  void begin(std::vector<Visit>& path, size_t atom, size_t came_by) {
    order_[atom] = reaches_[atom] = count_++;
    path.push_back({atom, came_by});
  }

  void end(std::vector<Visit>& path) {
    const Visit visit = path.back();
    path.pop_back();
    if (path.empty()) return;
    const size_t parent = path.back().atom;
    if (reaches_[visit.atom] > order_[parent]) molecule_.bonds[visit.came_by].in_ring = false;
    reaches_[parent] = std::min(reaches_[parent], reaches_[visit.atom]);
  }

  Molecule& molecule_;
  AtomBonds bonds_of_;
  std::vector<int64_t> order_, reaches_;
  int64_t count_ = 0;
};

using Bits = std::vector<uint64_t>;

// A space of cycles as sets of bonds; each row is reduced by the rows before it.
class CycleSpace {
 public:
  // Returns the set reduced by the cycles in the space; empty if it is a sum of them.
  Bits reduced(Bits cycle) const {
    for (size_t word = cycle.size(); word-- > 0;)
      while (cycle[word] != 0) {
        const size_t bit = 64 * word + static_cast<size_t>(63 - __builtin_clzll(cycle[word]));
        const auto row = rows_.find(bit);
        if (row == rows_.end()) return cycle;
        for (size_t i = 0; i <= word; ++i) cycle[i] ^= row->second[i];
      }
    return {};
  }

  void add(const Bits& cycle) {
    Bits rest = reduced(cycle);
    if (rest.empty()) return;
    size_t word = rest.size() - 1;
    while (rest[word] == 0) --word;
    const size_t bit = 64 * word + static_cast<size_t>(63 - __builtin_clzll(rest[word]));
    rows_.emplace(bit, std::move(rest));
  }

  size_t size() const { return rows_.size(); }

 private:
  std::map<size_t, Bits> rows_;  // by highest bit
};

// One ring system: atoms connected by ring bonds.
class RingSystem {
 public:
  RingSystem(const Molecule& molecule, const AtomBonds& bonds_of, const std::vector<size_t>& atoms)
      : atoms_(atoms), neighbours_(atoms.size()) {
    std::map<size_t, size_t> index;
    for (size_t i = 0; i < atoms.size(); ++i) index.emplace(atoms[i], i);
    for (size_t i = 0; i < atoms.size(); ++i)
      for (const size_t bond : bonds_of[atoms[i]]) {
        if (!molecule.bonds[bond].in_ring) continue;
        const size_t other = index.at(other_end(molecule.bonds[bond], atoms[i]));
        if (i < other) {
          neighbours_[i].push_back({other, bonds_.size()});
          neighbours_[other].push_back({i, bonds_.size()});
          bonds_.push_back(bond);
        }
      }
  }

  // Returns whether all rings were found.
  bool find(std::vector<Ring>& rings) {
    for (size_t root = 0; root < atoms_.size(); ++root)
      if (!add_cycles_of(root)) return false;
    const size_t dimension = bonds_.size() - atoms_.size() + 1;
    CycleSpace space;
    for (auto it = cycles_.begin(); it != cycles_.end() && space.size() < dimension;) {
      std::vector<Bits> same;
      const size_t length = it->size();
      for (; it != cycles_.end() && it->size() == length; ++it) {
        Bits bits((bonds_.size() + 63) / 64);
        for (const size_t bond : *it) bits[bond / 64] |= uint64_t{1} << (bond % 64);
        if (space.reduced(bits).empty()) continue;
        same.push_back(std::move(bits));
        rings.push_back(ring_of(*it));
      }
      for (const Bits& bits : same) space.add(bits);
    }
    return true;
  }

 private:
  struct Neighbour {
    size_t atom, bond;
  };
  struct ByLength {
    bool operator()(const std::vector<size_t>& a, const std::vector<size_t>& b) const {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };
  using Path = std::vector<size_t>;  // atoms, starting at the root

  std::vector<size_t> distances_from(size_t root, size_t last) const {
    std::vector<size_t> distances(atoms_.size(), atoms_.size());
    std::vector<size_t> queue = {root};
    distances[root] = 0;
    for (size_t i = 0; i < queue.size(); ++i)
      for (const Neighbour& next : neighbours_[queue[i]])
        if (next.atom <= last && distances[next.atom] == atoms_.size()) {
          distances[next.atom] = distances[queue[i]] + 1;
          queue.push_back(next.atom);
        }
    return distances;
  }

  // Adds the cycles of two shortest paths from the root over atoms of lower index, closed by a bond
  // between their ends or by one more atom.
  bool add_cycles_of(size_t root) {
    const std::vector<size_t> all = distances_from(root, atoms_.size());
    distances_ = distances_from(root, root);
    for (size_t atom = 0; atom < atoms_.size(); ++atom)
      if (distances_[atom] > all[atom]) distances_[atom] = atoms_.size();
    for (size_t atom = 0; atom < root; ++atom) {
      if (distances_[atom] == atoms_.size()) continue;
      std::vector<size_t> before;
      for (const Neighbour& next : neighbours_[atom]) {
        if (next.atom < atom && distances_[next.atom] == distances_[atom] &&
            !add_cycles(atom, next.atom, std::nullopt))
          return false;
        if (distances_[next.atom] + 1 == distances_[atom]) before.push_back(next.atom);
      }
      for (size_t i = 0; i < before.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (!add_cycles(before[i], before[j], atom)) return false;
    }
    return true;
  }

  bool add_cycles(size_t first, size_t second, std::optional<size_t> between) {
    const std::vector<Path> to_first = paths_to(first), to_second = paths_to(second);
    if (to_first.size() > max_paths || to_second.size() > max_paths) return false;
    for (const Path& a : to_first)
      for (const Path& b : to_second) {
        if (std::any_of(a.begin() + 1, a.end(), [&](size_t atom) {
              return std::find(b.begin() + 1, b.end(), atom) != b.end();
            }))
          continue;
        Path around = a;
        if (between) around.push_back(*between);
        around.insert(around.end(), b.rbegin(), b.rend() - 1);
        if (std::set<size_t>(around.begin(), around.end()).size() != around.size()) continue;
        cycles_.insert(bonds_around(around));
        if (cycles_.size() > max_candidates) return false;
      }
    return true;
  }

  // Returns the shortest paths; max_paths + 1 of them if there are more.
  std::vector<Path> paths_to(size_t atom) const {
    std::vector<Path> paths = {{atom}};
    for (size_t steps = distances_[atom]; steps > 0; --steps) {
      std::vector<Path> longer;
      for (const Path& path : paths)
        for (const Neighbour& next : neighbours_[path.back()])
          if (distances_[next.atom] + 1 == steps && longer.size() <= max_paths) {
            longer.push_back(path);
            longer.back().push_back(next.atom);
          }
      paths = std::move(longer);
    }
    for (Path& path : paths) std::reverse(path.begin(), path.end());
    return paths;
  }

  std::vector<size_t> bonds_around(const Path& around) const {
    std::vector<size_t> bonds;
    for (size_t i = 0; i < around.size(); ++i) {
      const size_t next = around[(i + 1) % around.size()];
      for (const Neighbour& neighbour : neighbours_[around[i]])
        if (neighbour.atom == next) bonds.push_back(neighbour.bond);
    }
    std::sort(bonds.begin(), bonds.end());
    return bonds;
  }

  Ring ring_of(const std::vector<size_t>& bonds) const {
    std::set<size_t> atoms;
    Ring ring;
    for (size_t atom = 0; atom < atoms_.size(); ++atom)
      for (const Neighbour& next : neighbours_[atom])
        if (std::binary_search(bonds.begin(), bonds.end(), next.bond)) atoms.insert(atoms_[atom]);
    ring.atoms.assign(atoms.begin(), atoms.end());
    for (const size_t bond : bonds) ring.bonds.push_back(bonds_[bond]);
    std::sort(ring.bonds.begin(), ring.bonds.end());
    return ring;
  }

  std::vector<size_t> atoms_, bonds_;  // indices in the molecule
  std::vector<std::vector<Neighbour>> neighbours_;
  std::vector<size_t> distances_;  // from the root; number of atoms: unreachable
  std::set<std::vector<size_t>, ByLength> cycles_;
};

}  // namespace

AtomBonds bonds_of_atoms(const Molecule& molecule) {
  AtomBonds bonds(molecule.atoms.size());
  for (size_t bond = 0; bond < molecule.bonds.size(); ++bond) {
    bonds[first_of(molecule.bonds[bond])].push_back(bond);
    bonds[second_of(molecule.bonds[bond])].push_back(bond);
  }
  return bonds;
}

void mark_rings(Molecule& molecule) { BridgeSearch(molecule).mark(); }

std::optional<std::vector<Ring>> relevant_rings(const Molecule& molecule) {
  const AtomBonds bonds_of = bonds_of_atoms(molecule);
  std::vector<bool> seen(molecule.atoms.size());
  std::vector<Ring> rings;
  for (size_t root = 0; root < seen.size(); ++root) {
    if (seen[root] || !molecule.atoms[root].in_ring) continue;
    std::vector<size_t> atoms = {root};
    seen[root] = true;
    for (size_t i = 0; i < atoms.size(); ++i)
      for (const size_t bond : bonds_of[atoms[i]]) {
        const size_t other = other_end(molecule.bonds[bond], atoms[i]);
        if (!molecule.bonds[bond].in_ring || seen[other]) continue;
        seen[other] = true;
        atoms.push_back(other);
      }
    if (!RingSystem(molecule, bonds_of, atoms).find(rings)) return std::nullopt;
  }
  std::stable_sort(rings.begin(), rings.end(),
                   [](const Ring& a, const Ring& b) { return a.bonds.size() < b.bonds.size(); });
  return rings;
}

}  // namespace attend::internal
