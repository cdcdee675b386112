#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "attend/text/molecule-inl.h"

namespace attend::internal {
namespace {

constexpr std::string_view element_symbols[] = {
    "*",  "H",  "He", "Li", "Be", "B",  "C",  "N",  "O",  "F",  "Ne", "Na", "Mg", "Al", "Si",
    "P",  "S",  "Cl", "Ar", "K",  "Ca", "Sc", "Ti", "V",  "Cr", "Mn", "Fe", "Co", "Ni", "Cu",
    "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y",  "Zr", "Nb", "Mo", "Tc", "Ru",
    "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I",  "Xe", "Cs", "Ba", "La", "Ce", "Pr",
    "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W",
    "Re", "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac",
    "Th", "Pa", "U",  "Np", "Pu", "Am", "Cm", "Bk", "Cf", "Es", "Fm", "Md", "No", "Lr", "Rf",
    "Db", "Sg", "Bh", "Hs", "Mt", "Ds", "Rg", "Cn", "Nh", "Fl", "Mc", "Lv", "Ts", "Og"};

struct Valences {
  std::string_view element;
  std::vector<int64_t> each;  // ascending
};

bool is_plain_hydrogen(const Molecule& molecule, const AtomBonds& bonds, size_t atom) {
  const Atom& own = molecule.atoms[atom];
  if (own.element != "H" || own.isotope != 0 || own.charge != 0 || own.hydrogens != 0 ||
      bonds[atom].size() != 1)
    return false;
  const Atom& other = molecule.atoms[other_end(molecule.bonds[bonds[atom][0]], atom)];
  return other.element != "H" && other.element != "*";
}

bool is_oxygen(const Molecule& molecule, const Bond& bond, size_t atom) {
  return molecule.atoms[other_end(bond, atom)].element == "O";
}

void separate(Molecule& molecule, Bond& bond, size_t atom) {
  ++molecule.atoms[atom].charge;
  --molecule.atoms[other_end(bond, atom)].charge;
  bond.type = bond.type == BondType::threefold ? BondType::twofold : BondType::single;
}

// N(=O)=O, C=N#N and C=N(=O)C, in which nitrogen has five bonds.
void separate_nitrogen(Molecule& molecule, const std::vector<size_t>& bonds, size_t atom) {
  const auto neutral = [&](const Bond& bond) {
    return molecule.atoms[other_end(bond, atom)].charge == 0;
  };
  for (const size_t index : bonds) {
    Bond& bond = molecule.bonds[index];
    const bool is_oxide = bond.type == BondType::twofold && is_oxygen(molecule, bond, atom);
    const bool is_azide =
        bond.type == BondType::threefold && molecule.atoms[other_end(bond, atom)].element == "N";
    if ((is_oxide || is_azide) && neutral(bond)) return separate(molecule, bond, atom);
  }
}

// Chloric acid and similar: a halogen that is bound to oxygen only.
void separate_halogen(Molecule& molecule, const std::vector<size_t>& bonds, size_t atom) {
  if (!std::all_of(bonds.begin(), bonds.end(),
                   [&](size_t bond) { return is_oxygen(molecule, molecule.bonds[bond], atom); }))
    return;
  for (const size_t index : bonds)
    if (molecule.bonds[index].type == BondType::twofold)
      separate(molecule, molecule.bonds[index], atom);
}

}  // namespace

bool is_element(const Atom& atom) { return atomic_number(atom) < std::ssize(element_symbols); }

int64_t atomic_number(const Atom& atom) {
  const auto* const found =
      std::find(std::begin(element_symbols), std::end(element_symbols), atom.element);
  return found - std::begin(element_symbols);
}

std::vector<int64_t> usual_valences(int64_t atomic_number) {
  static const std::vector<Valences> all = {
      {"H", {1}},       {"He", {0}},    {"Li", {1}},       {"Be", {2}},     {"B", {3}},
      {"C", {4}},       {"N", {3, 5}},  {"O", {2}},        {"F", {1}},      {"Ne", {0}},
      {"Na", {1}},      {"Mg", {2}},    {"Al", {3}},       {"Si", {4}},     {"P", {3, 5}},
      {"S", {2, 4, 6}}, {"Cl", {1}},    {"Ar", {0}},       {"As", {3, 5}},  {"Se", {2, 4, 6}},
      {"Br", {1}},      {"Sb", {3, 5}}, {"Te", {2, 4, 6}}, {"I", {1, 3, 5}}};
  if (atomic_number <= 0 || atomic_number >= std::ssize(element_symbols)) return {};
  const std::string_view element = element_symbols[static_cast<size_t>(atomic_number)];
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Valences& row) { return row.element == element; });
  return found == all.end() ? std::vector<int64_t>() : found->each;
}

int64_t outer_electrons(int64_t atomic_number) {
  // Noble gases, each with the first element after it that has full d and f shells.
  constexpr std::array<std::array<int64_t, 2>, 7> rows = {
      {{0, 0}, {2, 0}, {10, 0}, {18, 31}, {36, 49}, {54, 81}, {86, 113}}};
  for (size_t i = rows.size(); i-- > 1;) {
    const auto [core, full] = rows[i];
    if (atomic_number <= core) continue;
    const bool is_full = full > 0 && atomic_number >= full;
    return atomic_number - core - (is_full ? full - core - 3 : 0);
  }
  return atomic_number;
}

int64_t taken_by(const Bond& bond, size_t end) {
  if (bond.type == BondType::any) return 0;
  if (bond.type == BondType::dative)
    return (bond.direction == '>') == (first_of(bond) == end) ? 0 : 1;
  return lines_of(bond.type);
}

void merge_hydrogens(Molecule& molecule) {
  const AtomBonds bonds = bonds_of_atoms(molecule);
  std::vector<int64_t> number(molecule.atoms.size(), -1);
  std::vector<Atom> atoms;
  for (size_t atom = 0; atom < number.size(); ++atom) {
    if (is_plain_hydrogen(molecule, bonds, atom)) continue;
    number[atom] = static_cast<int64_t>(atoms.size());
    atoms.push_back(molecule.atoms[atom]);
  }
  if (atoms.size() == number.size()) return;
  std::vector<Bond> left;
  for (Bond bond : molecule.bonds) {
    const int64_t first = number[first_of(bond)], second = number[second_of(bond)];
    if (first < 0 || second < 0) {
      ++atoms[static_cast<size_t>(std::max(first, second))].hydrogens;
      continue;
    }
    bond.first = first;
    bond.second = second;
    left.push_back(bond);
  }
  molecule = {std::move(atoms), std::move(left)};
}

void separate_charges(Molecule& molecule) {
  const AtomBonds bonds = bonds_of_atoms(molecule);
  for (size_t atom = 0; atom < molecule.atoms.size(); ++atom) {
    const Atom& own = molecule.atoms[atom];
    if (own.charge != 0) continue;
    if (own.element == "Cl" || own.element == "Br" || own.element == "I")
      separate_halogen(molecule, bonds[atom], atom);
    int64_t valence = own.hydrogens + (own.is_aromatic ? 1 : 0);
    for (const size_t bond : bonds[atom]) valence += taken_by(molecule.bonds[bond], atom);
    if (own.element == "N" && valence == 5) separate_nitrogen(molecule, bonds[atom], atom);
  }
}

}  // namespace attend::internal
