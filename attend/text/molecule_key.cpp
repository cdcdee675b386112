#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "attend/text/molecule-inl.h"

namespace attend {
namespace {

using internal::AtomBonds;
using internal::first_of;
using internal::other_end;
using internal::second_of;

constexpr int64_t max_leaves = 2000;  // orders that a search compares

// Class of each atom. Equivalent atoms have equal numbers. Classes count from 0 in an order that
// does not depend on the order of atoms.
using Classes = std::vector<size_t>;

std::string name_of(const Atom& atom) {
  std::string name = atom.isotope == 0 ? "" : std::to_string(atom.isotope);
  name += atom.element;
  if (atom.is_aromatic) name += '~';
  if (!atom.chirality.empty()) name += '@';
  if (atom.hydrogens > 0) name += fmt::format("H{}", atom.hydrogens);
  if (atom.charge != 0) name += fmt::format("{:+}", atom.charge);
  return name;
}

// Symbol of the bond, seen from one end.
char symbol_of(const Bond& bond, size_t end) {
  if (bond.type == BondType::dative)
    return (bond.direction == '>') == (first_of(bond) == end) ? '>' : '<';
  return "-=#$:>?"[static_cast<size_t>(bond.type)];
}

size_t count_of(const Classes& classes) {
  return classes.empty() ? 0 : *std::max_element(classes.begin(), classes.end()) + 1;
}

// Returns the rank of each key; equal keys have equal ranks.
template <class Key>
Classes numbered(const std::vector<Key>& keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  Classes classes(keys.size());
  for (size_t i = 1; i < order.size(); ++i)
    classes[order[i]] = classes[order[i - 1]] + (keys[order[i - 1]] < keys[order[i]] ? 1 : 0);
  return classes;
}

// Splits classes until all atoms of a class have equal neighbours.
Classes refined(const Molecule& molecule, const AtomBonds& bonds, Classes classes) {
  for (size_t count = count_of(classes); count < classes.size();) {
    std::vector<std::vector<size_t>> keys;
    keys.reserve(classes.size());
    for (size_t atom = 0; atom < classes.size(); ++atom) {
      std::vector<size_t> key;
      for (const size_t bond : bonds[atom]) {
        const Bond& own = molecule.bonds[bond];
        key.push_back(256 * classes[other_end(own, atom)] +
                      static_cast<unsigned char>(symbol_of(own, atom)));
      }
      std::sort(key.begin(), key.end());
      key.insert(key.begin(), classes[atom]);
      keys.push_back(std::move(key));
    }
    classes = numbered(keys);
    const size_t more = count_of(classes);
    if (more == count) break;
    count = more;
  }
  return classes;
}

Classes classes_of(const Molecule& molecule, const AtomBonds& bonds) {
  std::vector<std::string> names;
  names.reserve(molecule.atoms.size());
  for (const Atom& atom : molecule.atoms) names.push_back(name_of(atom));
  return refined(molecule, bonds, numbered(names));
}

// Finds the order of the atoms of one part with the least text. If classes leave several orders,
// compares them, except for orders that are equal by a symmetry already found (McKay 1981).
class OrderSearch {
 public:
  explicit OrderSearch(const Molecule& molecule)
      : molecule_(molecule), bonds_(internal::bonds_of_atoms(molecule)) {}

  std::string least_text() {
    search(classes_of(molecule_, bonds_));
    return best_.text;
  }

 private:
  struct Leaf {
    std::vector<size_t> path;   // atoms that were singled out
    std::vector<size_t> atoms;  // in order
    std::string text;
  };

  void search(const Classes& classes) {
    if (count_of(classes) == classes.size()) return take_leaf(classes);
    const std::vector<size_t> tied = first_tied(classes);
    const size_t depth = path_.size();
    std::vector<size_t> explored;
    for (const size_t atom : tied) {
      if (is_equivalent(atom, explored)) continue;
      explored.push_back(atom);
      Classes singled = classes;
      for (size_t& one : singled) one = 2 * one + 1;
      --singled[atom];
      path_.push_back(atom);
      search(refined(molecule_, bonds_, numbered(singled)));
      path_.pop_back();
      if (leaves_ > max_leaves || return_to_ < depth) return;
      return_to_ = no_return;
    }
  }

  // Returns the first class with several atoms.
  static std::vector<size_t> first_tied(const Classes& classes) {
    std::vector<std::vector<size_t>> members(count_of(classes));
    for (size_t atom = 0; atom < classes.size(); ++atom) members[classes[atom]].push_back(atom);
    return *std::find_if(members.begin(), members.end(),
                         [](const std::vector<size_t>& one) { return one.size() > 1; });
  }

  // Returns whether symmetries that fix the atoms of the path map the atom to an explored one.
  bool is_equivalent(size_t atom, const std::vector<size_t>& explored) const {
    std::vector<size_t> reached = {atom};
    std::vector<bool> seen(molecule_.atoms.size());
    seen[atom] = true;
    for (size_t i = 0; i < reached.size(); ++i) {
      if (std::find(explored.begin(), explored.end(), reached[i]) != explored.end()) return true;
      for (const std::vector<size_t>& symmetry : symmetries_) {
        const bool keeps_path = std::all_of(path_.begin(), path_.end(),
                                            [&](size_t one) { return symmetry[one] == one; });
        if (!keeps_path || seen[symmetry[reached[i]]]) continue;
        seen[symmetry[reached[i]]] = true;
        reached.push_back(symmetry[reached[i]]);
      }
    }
    return false;
  }

  void take_leaf(const Classes& classes) {
    Leaf leaf{path_, std::vector<size_t>(classes.size()), ""};
    for (size_t atom = 0; atom < classes.size(); ++atom) leaf.atoms[classes[atom]] = atom;
    leaf.text = text_of(leaf.atoms, classes);
    if (++leaves_ == 1) {
      first_ = best_ = std::move(leaf);
      return;
    }
    for (const Leaf* other : {&first_, &best_})
      if (leaf.text == other->text) return add_symmetry(leaf, *other);
    if (leaf.text < best_.text) best_ = std::move(leaf);
  }

  // Continues at the fork of the two paths: the rest equals what was searched before.
  void add_symmetry(const Leaf& leaf, const Leaf& other) {
    std::vector<size_t> there(leaf.atoms.size()), back(leaf.atoms.size());
    for (size_t i = 0; i < leaf.atoms.size(); ++i) {
      there[leaf.atoms[i]] = other.atoms[i];
      back[other.atoms[i]] = leaf.atoms[i];
    }
    symmetries_.push_back(std::move(there));
    symmetries_.push_back(std::move(back));
    const auto parted =
        std::mismatch(leaf.path.begin(), leaf.path.end(), other.path.begin(), other.path.end());
    return_to_ = static_cast<size_t>(parted.first - leaf.path.begin());
  }

  std::string text_of(const std::vector<size_t>& atoms, const Classes& places) const {
    std::string text;
    for (size_t place = 0; place < atoms.size(); ++place) {
      text += (place == 0 ? "" : " ") + name_of(molecule_.atoms[atoms[place]]);
      std::vector<std::pair<size_t, char>> before;
      for (const size_t bond : bonds_[atoms[place]]) {
        const size_t other = places[other_end(molecule_.bonds[bond], atoms[place])];
        if (other < place)
          before.emplace_back(other, symbol_of(molecule_.bonds[bond], atoms[place]));
      }
      std::sort(before.begin(), before.end());
      for (const auto& [other, symbol] : before)
        fmt::format_to(std::back_inserter(text), " {}{}", symbol, other);
    }
    return text;
  }

  static constexpr size_t no_return = static_cast<size_t>(-1);

  const Molecule& molecule_;
  AtomBonds bonds_;
  std::vector<size_t> path_;
  std::vector<std::vector<size_t>> symmetries_;  // image of each atom
  Leaf first_, best_;
  int64_t leaves_ = 0;
  size_t return_to_ = no_return;  // depth of the search at which to continue
};

// Returns the connected components.
std::vector<Molecule> parts_of(const Molecule& molecule) {
  const AtomBonds bonds = internal::bonds_of_atoms(molecule);
  std::vector<Molecule> parts;
  std::vector<int64_t> place(molecule.atoms.size(), -1);
  for (size_t root = 0; root < place.size(); ++root) {
    if (place[root] >= 0) continue;
    std::vector<size_t> atoms = {root};
    place[root] = 0;
    for (size_t i = 0; i < atoms.size(); ++i)
      for (const size_t bond : bonds[atoms[i]]) {
        const size_t other = other_end(molecule.bonds[bond], atoms[i]);
        if (place[other] >= 0) continue;
        place[other] = std::ssize(atoms);
        atoms.push_back(other);
      }
    Molecule& part = parts.emplace_back();
    for (const size_t atom : atoms) {
      part.atoms.push_back(molecule.atoms[atom]);
      for (const size_t bond : bonds[atom]) {
        Bond own = molecule.bonds[bond];
        if (first_of(own) != atom) continue;
        own.first = place[first_of(own)];
        own.second = place[second_of(own)];
        part.bonds.push_back(own);
      }
    }
  }
  return parts;
}

// Returns whether a nitrogen inverts: it has three neighbours and is not held by rings.
bool turns_over(const Molecule& molecule, const std::vector<internal::Ring>& rings, size_t atom,
                size_t neighbours) {
  if (molecule.atoms[atom].element != "N" || neighbours != 3) return false;
  std::vector<const internal::Ring*> own;
  for (const internal::Ring& ring : rings)
    if (std::binary_search(ring.atoms.begin(), ring.atoms.end(), atom)) own.push_back(&ring);
  for (const internal::Ring* ring : own) {
    if (ring->atoms.size() == 3) return false;
    for (const internal::Ring* other : own) {
      std::vector<size_t> shared;
      std::set_intersection(ring->bonds.begin(), ring->bonds.end(), other->bonds.begin(),
                            other->bonds.end(), std::back_inserter(shared));
      if (ring != other && shared.size() > 1) return false;
    }
  }
  return true;
}

// Returns whether a ring with both bonds has another marked atom, which distinguishes its
// directions.
bool ring_tells_apart(const Molecule& molecule, const std::vector<internal::Ring>& rings, size_t a,
                      size_t b, size_t atom) {
  const auto has = [](const std::vector<size_t>& all, size_t one) {
    return std::binary_search(all.begin(), all.end(), one);
  };
  return std::any_of(rings.begin(), rings.end(), [&](const internal::Ring& ring) {
    return has(ring.bonds, a) && has(ring.bonds, b) &&
           std::any_of(ring.atoms.begin(), ring.atoms.end(), [&](size_t other) {
             return other != atom && !molecule.atoms[other].chirality.empty();
           });
  });
}

// Returns whether two neighbours of the atom are equivalent by their classes and rings.
bool has_equal_neighbours(const Molecule& molecule, const std::vector<internal::Ring>& rings,
                          const std::vector<size_t>& bonds, size_t atom, const Classes& classes) {
  for (const size_t a : bonds)
    for (const size_t b : bonds)
      if (a < b &&
          classes[other_end(molecule.bonds[a], atom)] ==
              classes[other_end(molecule.bonds[b], atom)] &&
          !ring_tells_apart(molecule, rings, a, b, atom))
        return true;
  return false;
}

}  // namespace

void internal::remove_false_centres(Molecule& molecule) {
  if (std::all_of(molecule.atoms.begin(), molecule.atoms.end(),
                  [](const Atom& atom) { return atom.chirality.empty(); }))
    return;
  Molecule unmarked = molecule;
  for (Atom& atom : unmarked.atoms) atom.chirality.clear();
  const AtomBonds bonds = bonds_of_atoms(molecule);
  const Classes classes = classes_of(unmarked, bonds);
  const auto rings = relevant_rings(molecule);
  if (!rings) return;
  std::vector<bool> is_false(molecule.atoms.size());
  for (size_t i = 0; i < is_false.size(); ++i) {
    const Atom& atom = molecule.atoms[i];
    // Only "@" and "@@" apply to four neighbours.
    if (atom.chirality.find_first_not_of('@') != std::string::npos) continue;
    const size_t neighbours = bonds[i].size() + static_cast<size_t>(atom.hydrogens);
    if (atom.hydrogens > 1 || neighbours < 3 || turns_over(molecule, *rings, i, neighbours) ||
        has_equal_neighbours(molecule, *rings, bonds[i], i, classes))
      is_false[i] = true;
  }
  for (size_t i = 0; i < is_false.size(); ++i)
    if (is_false[i]) molecule.atoms[i].chirality.clear();
}

std::string canonical_key(const Molecule& molecule) {
  std::vector<std::string> texts;
  for (const Molecule& part : parts_of(molecule)) texts.push_back(OrderSearch(part).least_text());
  std::sort(texts.begin(), texts.end());
  return fmt::format("{}", fmt::join(texts, " . "));
}

}  // namespace attend
