#include <algorithm>
#include <optional>

#include "attend/text/molecule-inl.h"

namespace attend::internal {
namespace {

// A maximum matching of a graph (Edmonds 1965): finds paths of alternating free and chosen bonds,
// and shrinks odd rings to one atom.
class Matching {
 public:
  explicit Matching(std::vector<std::vector<size_t>> neighbours)
      : neighbours_(std::move(neighbours)), partner_(neighbours_.size(), none()) {}

  // Returns the partner of each atom, or none(). Atoms from `optional` on are used only if the
  // atoms before them need them.
  const std::vector<size_t>& partners(size_t optional) {
    for (const size_t last : {optional, neighbours_.size()}) {
      last_ = last;
      for (size_t atom = 0; atom < optional; ++atom)
        for (const size_t other : neighbours_[atom])
          if (partner_[atom] == none() && other < last && partner_[other] == none())
            match(atom, other);
      for (size_t atom = 0; atom < optional; ++atom)
        if (partner_[atom] == none()) augment(atom);
    }
    return partner_;
  }

  size_t none() const { return neighbours_.size(); }

 private:
  void match(size_t a, size_t b) {
    partner_[a] = b;
    partner_[b] = a;
  }

  void augment(size_t root) {
    const size_t count = neighbours_.size();
    parent_.assign(count, none());
    base_.resize(count);
    for (size_t i = 0; i < count; ++i) base_[i] = i;
    is_even_.assign(count, false);
    is_even_[root] = true;
    queue_ = {root};
    for (size_t i = 0; i < queue_.size(); ++i)
      for (const size_t next : neighbours_[queue_[i]])
        if (const auto end = next < last_ ? reach(queue_[i], next, root) : std::nullopt) {
          flip(*end);
          return;
        }
  }

  // Continues the search from `atom`; returns `next` if it is a free atom.
  std::optional<size_t> reach(size_t atom, size_t next, size_t root) {
    if (base_[atom] == base_[next] || partner_[atom] == next) return std::nullopt;
    if (next == root || (partner_[next] != none() && parent_[partner_[next]] != none())) {
      shrink(atom, next);
    } else if (parent_[next] == none()) {
      parent_[next] = atom;
      if (partner_[next] == none()) return next;
      add_even(partner_[next]);
    }
    return std::nullopt;
  }

  void add_even(size_t atom) {
    if (is_even_[atom]) return;
    is_even_[atom] = true;
    queue_.push_back(atom);
  }

  // Inverts the choice of bonds along the path that ends at a free atom.
  void flip(size_t atom) {
    while (atom != none()) {
      const size_t before = parent_[atom], next = partner_[before];
      match(atom, before);
      atom = next;
    }
  }

  size_t common_base(size_t a, size_t b) const {
    std::vector<bool> seen(neighbours_.size());
    for (;;) {
      a = base_[a];
      seen[a] = true;
      if (partner_[a] == none()) break;
      a = parent_[partner_[a]];
    }
    for (;;) {
      b = base_[b];
      if (seen[b]) return b;
      b = parent_[partner_[b]];
    }
  }

  void shrink(size_t a, size_t b) {
    const size_t base = common_base(a, b);
    std::vector<bool> in_ring(neighbours_.size());
    mark_path(a, base, b, in_ring);
    mark_path(b, base, a, in_ring);
    for (size_t i = 0; i < neighbours_.size(); ++i) {
      if (!in_ring[base_[i]]) continue;
      base_[i] = base;
      add_even(i);
    }
  }

  void mark_path(size_t atom, size_t base, size_t child, std::vector<bool>& in_ring) {
    while (base_[atom] != base) {
      in_ring[base_[atom]] = in_ring[base_[partner_[atom]]] = true;
      parent_[atom] = child;
      child = partner_[atom];
      atom = parent_[partner_[atom]];
    }
  }

  std::vector<std::vector<size_t>> neighbours_;
  std::vector<size_t> partner_, parent_, base_, queue_;
  size_t last_ = 0;  // atoms from here on are not used
  std::vector<bool> is_even_;
};

// Writes double bonds into one molecule.
class DoubleBonds {
 public:
  DoubleBonds(Molecule& molecule, const AtomBonds& bonds)
      : molecule_(molecule), bonds_of_(bonds), seen_(molecule.atoms.size()) {}

  void write() {
    for (size_t atom = 0; atom < seen_.size(); ++atom)
      if (!seen_[atom] && has_aromatic_bond(atom)) write_system(atom);
  }

 private:
  bool is_aromatic(size_t bond) const { return molecule_.bonds[bond].type == BondType::aromatic; }
  bool has_aromatic_bond(size_t atom) const {
    return std::any_of(bonds_of_[atom].begin(), bonds_of_[atom].end(),
                       [&](size_t bond) { return is_aromatic(bond); });
  }

  // Returns whether the usual valences of an atom leave one free for a double bond.
  bool takes_double_bond(size_t atom) const {
    const Atom& own = molecule_.atoms[atom];
    int64_t sum = own.hydrogens;
    for (const size_t bond : bonds_of_[atom]) sum += taken_by(molecule_.bonds[bond], atom);
    const std::vector<int64_t> usual = usual_valences(atomic_number(own) - own.charge);
    const auto enough =
        std::find_if(usual.begin(), usual.end(), [&](int64_t valence) { return valence >= sum; });
    return enough != usual.end() && *enough > sum;
  }

  bool has_single_bonds(size_t atom) const {
    return std::all_of(bonds_of_[atom].begin(), bonds_of_[atom].end(),
                       [&](size_t bond) { return lines_of(molecule_.bonds[bond].type) == 1; });
  }

  // Returns the atoms that aromatic bonds connect with `root`.
  std::vector<size_t> system_of(size_t root) {
    std::vector<size_t> atoms = {root};
    seen_[root] = true;
    for (size_t i = 0; i < atoms.size(); ++i)
      for (const size_t bond : bonds_of_[atoms[i]]) {
        const size_t other = other_end(molecule_.bonds[bond], atoms[i]);
        if (!is_aromatic(bond) || seen_[other]) continue;
        seen_[other] = true;
        atoms.push_back(other);
      }
    return atoms;
  }

  void write_system(size_t root) {
    const std::vector<size_t> atoms = system_of(root);
    std::vector<size_t> index(seen_.size(), atoms.size()), open;
    // A "*" atom without a double bond takes one if others need it to.
    const auto is_any = [&](size_t atom) { return molecule_.atoms[atom].element == "*"; };
    size_t needed = 0;
    for (const bool any : {false, true}) {
      for (const size_t atom : atoms)
        if (is_any(atom) == any && (any ? has_single_bonds(atom) : takes_double_bond(atom))) {
          index[atom] = open.size();
          open.push_back(atom);
        }
      if (!any) needed = open.size();
    }
    std::vector<std::vector<size_t>> neighbours(open.size());
    for (size_t i = 0; i < open.size(); ++i)
      for (const size_t bond : bonds_of_[open[i]]) {
        const size_t other = index[other_end(molecule_.bonds[bond], open[i])];
        if (is_aromatic(bond) && other < open.size()) neighbours[i].push_back(other);
      }
    Matching matching(std::move(neighbours));
    const std::vector<size_t>& partners = matching.partners(needed);
    for (size_t i = 0; i < needed; ++i)
      if (partners[i] == matching.none()) return;
    for (const size_t atom : atoms) {
      molecule_.atoms[atom].is_aromatic = false;
      for (const size_t bond : bonds_of_[atom]) {
        if (!is_aromatic(bond)) continue;
        const size_t own = index[atom];
        const size_t other = index[other_end(molecule_.bonds[bond], atom)];
        const bool is_double = own < open.size() && partners[own] == other;
        molecule_.bonds[bond].type = is_double ? BondType::twofold : BondType::single;
      }
    }
  }

  Molecule& molecule_;
  const AtomBonds& bonds_of_;
  std::vector<bool> seen_;
};

}  // namespace

void write_double_bonds(Molecule& molecule, const AtomBonds& bonds) {
  DoubleBonds(molecule, bonds).write();
}

}  // namespace attend::internal
