#include "attend/data/molecule.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/smiles-inl.h"

namespace attend {
namespace {

constexpr std::string_view element_symbols =
    " H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se "
    "Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy "
    "Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf "
    "Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og ";
constexpr std::string_view aromatic_elements = " b c n o p s se as te ";

struct Valences {
  std::string_view element;
  std::vector<int64_t> each;  // ascending
};

// Of atoms without brackets; others have no hydrogens of their own.
const std::vector<Valences>& usual_valences() {
  static const std::vector<Valences> all = {
      {"B", {3}},       {"C", {4}}, {"N", {3, 5}}, {"O", {2}},  {"P", {3, 5}},
      {"S", {2, 4, 6}}, {"F", {1}}, {"Cl", {1}},   {"Br", {1}}, {"I", {1}}};
  return all;
}

bool names_one(std::string_view list, std::string_view symbol) {
  return list.find(" " + std::string(symbol) + " ") != std::string_view::npos;
}

bool is_digit_of_bracket(char c) { return c >= '0' && c <= '9'; }

struct BondSymbol {
  char symbol;
  BondType type;
};

constexpr BondSymbol bond_symbols[] = {{'-', BondType::single},    {'=', BondType::twofold},
                                       {'#', BondType::threefold}, {'$', BondType::fourfold},
                                       {':', BondType::aromatic},  {'/', BondType::single},
                                       {'\\', BondType::single}};

// What is written between two atoms.
struct WrittenBond {
  BondType type;
  char direction;  // 0: none
};

std::optional<WrittenBond> bond_of(std::string_view token) {
  const auto* const row = std::find_if(
      std::begin(bond_symbols), std::end(bond_symbols),
      [&](const BondSymbol& one) { return token.size() == 1 && token[0] == one.symbol; });
  if (row == std::end(bond_symbols)) return std::nullopt;
  const bool is_directed = row->symbol == '/' || row->symbol == '\\';
  return WrittenBond{row->type, is_directed ? row->symbol : '\0'};
}

// Takes from the front of `text` as many characters as fit.
template <class Fits>
std::string_view taken_while(std::string_view& text, Fits fits) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), fits);
  const std::string_view front = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(front.size());
  return front;
}

// Reads the fields of a bracket atom: isotope, element, chirality, hydrogens, charge, class.
class BracketReader {
 public:
  BracketReader(std::string_view token, std::string_view molecule)
      : token_(token), molecule_(molecule), rest_(token.substr(1, token.size() - 2)) {}

  Atom read() {
    Atom atom;
    atom.text = token_;
    atom.isotope = number(0);
    read_element(atom);
    atom.chirality = chirality();
    if (rest_.starts_with('H')) {
      rest_.remove_prefix(1);
      atom.hydrogens = number(1);
    }
    atom.charge = charge();
    if (rest_.starts_with(':')) {
      rest_.remove_prefix(1);
      if (number(-1) < 0) refuse("a number follows :");
    }
    if (!rest_.empty())
      refuse(
          fmt::format("{} is in no place; the order is [isotope element chirality H charge "
                      ":class]",
                      in_quotes(rest_)));
    return atom;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    fail("SMILES {}: atom {}: {}", in_quotes(molecule_), in_quotes(token_), reason);
  }

  int64_t number(int64_t absent) {
    const std::string_view digits = taken_while(rest_, is_digit_of_bracket);
    if (digits.empty()) return absent;
    if (digits.size() > 4) refuse("a number has at most four digits");
    int64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  void read_element(Atom& atom) {
    for (const size_t length : {size_t{2}, size_t{1}}) {
      const std::string_view symbol = rest_.substr(0, length);
      if (symbol.size() < length) continue;
      atom.is_aromatic = names_one(aromatic_elements, symbol);
      if (!atom.is_aromatic && symbol != "*" && !names_one(element_symbols, symbol)) continue;
      rest_.remove_prefix(length);
      atom.element = symbol;
      // Aromatic ones are written small.
      if (atom.is_aromatic) atom.element[0] = static_cast<char>(atom.element[0] - 'a' + 'A');
      return;
    }
    refuse("names no element");
  }

  std::string chirality() {
    const std::string_view all = rest_;
    taken_while(rest_, [](char c) { return c == '@'; });
    for (const std::string_view family : {"TH", "AL", "SP", "TB", "OH"}) {
      if (all.size() == rest_.size() || !rest_.starts_with(family)) continue;
      // Without a number these letters are no chirality: the H of OH is a hydrogen.
      std::string_view behind = rest_.substr(family.size());
      if (taken_while(behind, is_digit_of_bracket).empty()) continue;
      rest_ = behind;
      break;
    }
    return std::string(all.substr(0, all.size() - rest_.size()));
  }

  int64_t charge() {
    const std::string_view signs =
        taken_while(rest_, [&](char c) { return (c == '+' || c == '-') && c == rest_.front(); });
    if (signs.empty()) return 0;
    const auto count = static_cast<int64_t>(signs.size());
    const int64_t size = count > 1 ? count : number(1);
    return signs[0] == '+' ? size : -size;
  }

  std::string_view token_, molecule_, rest_;
};

Atom read_atom(std::string_view token, std::string_view molecule) {
  if (token.front() == '[') return BracketReader(token, molecule).read();
  Atom atom;
  atom.text = atom.element = token;
  atom.is_aromatic = names_one(aromatic_elements, token);
  if (atom.is_aromatic) atom.element[0] = static_cast<char>(token[0] - 'a' + 'A');
  return atom;
}

// Marks the bonds that are in a ring: those that are no bridges, by a search in depth that knows
// how far back each part reaches (Tarjan 1974).
class RingSearch {
 public:
  explicit RingSearch(Molecule& molecule)
      : molecule_(molecule),
        bonds_of_(molecule.atoms.size()),
        order_(molecule.atoms.size(), -1),
        reaches_(molecule.atoms.size(), -1) {
    for (size_t bond = 0; bond < molecule.bonds.size(); ++bond) {
      bonds_of_[static_cast<size_t>(molecule.bonds[bond].first)].push_back(bond);
      bonds_of_[static_cast<size_t>(molecule.bonds[bond].second)].push_back(bond);
    }
  }

  void mark() {
    for (Bond& bond : molecule_.bonds) bond.in_ring = true;
    for (size_t atom = 0; atom < order_.size(); ++atom)
      if (order_[atom] < 0) search_from(atom);
    for (const Bond& bond : molecule_.bonds) {
      if (!bond.in_ring) continue;
      molecule_.atoms[static_cast<size_t>(bond.first)].in_ring = true;
      molecule_.atoms[static_cast<size_t>(bond.second)].in_ring = true;
    }
  }

 private:
  struct Visit {
    size_t atom;
    size_t came_by;   // a bond; as many as there are: by none
    size_t next = 0;  // of the atom's bonds
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
      if (bond == visit.came_by) continue;
      const Bond& ends = molecule_.bonds[bond];
      const auto other = static_cast<size_t>(ends.first) == visit.atom
                             ? static_cast<size_t>(ends.second)
                             : static_cast<size_t>(ends.first);
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
  std::vector<std::vector<size_t>> bonds_of_;
  std::vector<int64_t> order_, reaches_;
  int64_t count_ = 0;
};

// How many valences of each atom its bonds take. Every bond of an aromatic atom takes one there,
// and the ring one more.
std::vector<int64_t> taken_valences(const Molecule& molecule) {
  std::vector<int64_t> taken;
  for (const Atom& atom : molecule.atoms) taken.push_back(atom.is_aromatic ? 1 : 0);
  for (const Bond& bond : molecule.bonds) {
    const int64_t count = bond.type == BondType::aromatic ? 1 : static_cast<int64_t>(bond.type) + 1;
    taken[static_cast<size_t>(bond.first)] += count;
    taken[static_cast<size_t>(bond.second)] += count;
  }
  return taken;
}

void add_hydrogens(Molecule& molecule) {
  const std::vector<int64_t> taken = taken_valences(molecule);
  for (size_t i = 0; i < molecule.atoms.size(); ++i) {
    Atom& atom = molecule.atoms[i];
    if (atom.text.front() == '[') continue;
    for (const Valences& row : usual_valences()) {
      if (row.element != atom.element) continue;
      // An aromatic atom has the least of its valences.
      const auto last = atom.is_aromatic ? row.each.begin() + 1 : row.each.end();
      const auto enough = std::find_if(row.each.begin(), last,
                                       [&](int64_t valence) { return valence >= taken[i]; });
      if (enough != last) atom.hydrogens = *enough - taken[i];
    }
  }
}

// Puts together what the symbols say.
class MoleculeReader {
 public:
  explicit MoleculeReader(std::string_view text) : text_(text) {}

  Molecule read() {
    for (const std::string& token : internal::smiles_symbols(text_)) {
      if (const auto bond = bond_of(token))
        take_bond(*bond, token);
      else if (token == "(" || token == ")" || token == ".")
        take_structure(token[0]);
      else if (token[0] == '%' || is_digit_of_bracket(token[0]))
        take_ring(token);
      else
        take_atom(token);
      before_ = token;
    }
    if (!before_.empty()) check_end("the end");
    RingSearch(molecule_).mark();
    for (const size_t bond : unwritten_)
      if (!molecule_.bonds[bond].in_ring) molecule_.bonds[bond].type = BondType::single;
    add_hydrogens(molecule_);
    return std::move(molecule_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    fail("SMILES {}: {}", in_quotes(text_), reason);
  }

  // Whether an atom must come before whatever follows.
  void check_end(std::string_view what) const {
    if (written_) refuse(fmt::format("an atom follows a bond, and not {}", what));
    if (before_ == "(" || before_ == "." || before_.empty())
      refuse(fmt::format("an atom is missing before {}", what));
  }

  void check_atom(const std::string& token) const {
    if (here_ < 0) refuse(fmt::format("an atom is missing before {}", token));
  }

  void take_bond(const WrittenBond& bond, const std::string& token) {
    check_atom(token);
    if (written_) refuse(fmt::format("an atom follows a bond, and not {}", token));
    written_ = bond;
  }

  void take_structure(char symbol) {
    const std::string what(1, symbol);
    if (symbol == '(') {
      check_atom(what);
      if (written_) refuse("an atom follows a bond, and not (");
      branches_.push_back(here_);
      return;
    }
    check_end(what);
    if (symbol == ')') {
      here_ = branches_.back();
      branches_.pop_back();
    } else {
      here_ = -1;
    }
  }

  void take_atom(const std::string& token) {
    molecule_.atoms.push_back(read_atom(token, text_));
    const auto added = static_cast<int64_t>(molecule_.atoms.size()) - 1;
    if (here_ >= 0) add_bond(here_, added, written_, 0);
    written_.reset();
    here_ = added;
  }

  void take_ring(const std::string& token) {
    check_atom(token);
    int number = 0;
    const size_t skipped = token[0] == '%' ? 1 : 0;
    std::from_chars(token.data() + skipped, token.data() + token.size(), number);
    const auto open = rings_.find(number);
    if (open == rings_.end()) {
      rings_.emplace(number, Ring{here_, written_});
    } else {
      const Ring ring = open->second;
      rings_.erase(open);
      if (ring.atom == here_)
        refuse(fmt::format("ring {} begins and ends at atom {}", number, here_ + 1));
      close_ring(ring, number);
    }
    written_.reset();
  }

  struct Ring {
    int64_t atom;
    std::optional<WrittenBond> bond;
  };

  void close_ring(const Ring& ring, int number) {
    if (ring.bond && written_ && ring.bond->type != written_->type)
      refuse(
          fmt::format("ring {} has one bond where it begins and another where it ends; write "
                      "it once, or the same twice",
                      number));
    // A direction is that from the atom beside which it is written.
    const bool is_first = ring.atom < here_;
    std::optional<WrittenBond> bond = ring.bond ? ring.bond : written_;
    if (bond && bond->direction != 0 && ring.bond.has_value() != is_first)
      bond->direction = bond->direction == '/' ? '\\' : '/';
    add_bond(std::min(ring.atom, here_), std::max(ring.atom, here_), bond, number);
  }

  void add_bond(int64_t first, int64_t second, const std::optional<WrittenBond>& written,
                int ring) {
    if (!pairs_.emplace(first, second).second)
      refuse(fmt::format("ring {} binds atoms {} and {}, which are bound already", ring, first + 1,
                         second + 1));
    const auto is_aromatic = [&](int64_t atom) {
      return molecule_.atoms[static_cast<size_t>(atom)].is_aromatic;
    };
    Bond bond{first, second};
    if (written) {
      bond.type = written->type;
      bond.direction = written->direction;
    } else if (is_aromatic(first) && is_aromatic(second)) {
      bond.type = BondType::aromatic;
      unwritten_.push_back(molecule_.bonds.size());
    }
    molecule_.bonds.push_back(bond);
  }

  std::string_view text_;
  Molecule molecule_;
  std::string before_;                  // the last token
  int64_t here_ = -1;                   // the atom that the next one is bound to
  std::optional<WrittenBond> written_;  // behind that atom
  std::vector<int64_t> branches_;       // the atoms that they begin at
  std::map<int, Ring> rings_;           // that are open
  std::set<std::pair<int64_t, int64_t>> pairs_;
  std::vector<size_t> unwritten_;  // bonds between aromatic atoms
};

}  // namespace

Molecule read_molecule(std::string_view smiles) { return MoleculeReader(smiles).read(); }

}  // namespace attend
