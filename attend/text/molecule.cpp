#include "attend/text/molecule.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "attend/base/error.h"
#include "attend/text/molecule-inl.h"
#include "attend/text/smiles-inl.h"

namespace attend {
namespace {

constexpr std::string_view aromatic_elements = " b c n o p s se as te si ";

bool names_one(std::string_view list, std::string_view symbol) {
  return list.find(" " + std::string(symbol) + " ") != std::string_view::npos;
}

bool is_digit_of_bracket(char c) { return c >= '0' && c <= '9'; }

// A bond symbol between two atoms.
struct WrittenBond {
  std::string_view symbol;
  BondType type;
  char direction = 0;  // as in Bond, from the atom before to the atom after the symbol
};

constexpr WrittenBond bond_symbols[] = {
    {"-", BondType::single},        {"=", BondType::twofold},
    {"#", BondType::threefold},     {"$", BondType::fourfold},
    {":", BondType::aromatic},      {"/", BondType::single, '/'},
    {"\\", BondType::single, '\\'}, {"->", BondType::dative, '>'},
    {"<-", BondType::dative, '<'},  {"~", BondType::any}};

std::optional<WrittenBond> bond_of(std::string_view token) {
  const auto* const row = std::find_if(std::begin(bond_symbols), std::end(bond_symbols),
                                       [&](const WrittenBond& one) { return token == one.symbol; });
  if (row == std::end(bond_symbols)) return std::nullopt;
  return *row;
}

char turned(char direction) {
  switch (direction) {
    case '/':
      return '\\';
    case '\\':
      return '/';
    case '>':
      return '<';
    case '<':
      return '>';
    default:
      return direction;
  }
}

// Removes the longest matching prefix of `text` and returns it.
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
      if (taken_while(rest_, is_digit_of_bracket).empty()) refuse("a number follows :");
    }
    if (!rest_.empty())
      refuse(
          fmt::format("{} is misplaced; the order is [isotope element chirality H charge :class]",
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
      atom.element = symbol;
      // Aromatic atoms are written in lower case.
      if (atom.is_aromatic) atom.element[0] = static_cast<char>(atom.element[0] - 'a' + 'A');
      if (!internal::is_element(atom)) continue;
      rest_.remove_prefix(length);
      return;
    }
    refuse("names no element");
  }

  std::string chirality() {
    const std::string_view all = rest_;
    if (taken_while(rest_, [](char c) { return c == '@'; }).size() > 2)
      refuse("a turn has one or two @, not more");
    for (const std::string_view family : {"TH", "AL", "SP", "TB", "OH"}) {
      if (all.size() == rest_.size() || !rest_.starts_with(family)) continue;
      // Without a number these letters are not a chirality: the H of OH is a hydrogen.
      std::string_view rest = rest_.substr(family.size());
      if (taken_while(rest, is_digit_of_bracket).empty()) continue;
      rest_ = rest;
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

// Adds hydrogens to atoms without brackets for their free valences. The ring uses one more valence
// of an aromatic atom.
void add_hydrogens(Molecule& molecule) {
  const internal::AtomBonds bonds = internal::bonds_of_atoms(molecule);
  for (size_t i = 0; i < molecule.atoms.size(); ++i) {
    Atom& atom = molecule.atoms[i];
    if (atom.text.front() == '[') continue;
    int64_t taken = atom.is_aromatic ? 1 : 0;
    for (const size_t bond : bonds[i]) taken += internal::taken_by(molecule.bonds[bond], i);
    const std::vector<int64_t> usual = internal::usual_valences(internal::atomic_number(atom));
    // An aromatic atom has its lowest valence.
    const auto last = atom.is_aromatic && !usual.empty() ? usual.begin() + 1 : usual.end();
    const auto enough =
        std::find_if(usual.begin(), last, [&](int64_t valence) { return valence >= taken; });
    if (enough != last) atom.hydrogens = *enough - taken;
  }
}

// Builds a molecule from the symbols.
class MoleculeReader {
 public:
  explicit MoleculeReader(std::string_view text) : text_(text) {}

  Molecule read() {
    for (const std::string& token : internal::smiles_symbols(text_)) {
      if (const auto bond = bond_of(token))
        take_bond(*bond, token);
      else if (token == "(" || token == ")" || token == ".")
        take_structure(token[0]);
      else if (const auto ring = internal::smiles_ring(token))
        take_ring(token, *ring);
      else
        take_atom(token);
      before_ = token;
    }
    if (!before_.empty()) check_end("the end");
    internal::mark_rings(molecule_);
    for (const size_t bond : unwritten_)
      if (!molecule_.bonds[bond].in_ring) molecule_.bonds[bond].type = BondType::single;
    add_hydrogens(molecule_);
    internal::merge_hydrogens(molecule_);
    internal::separate_charges(molecule_);
    internal::perceive_aromaticity(molecule_);
    internal::remove_false_centres(molecule_);
    return std::move(molecule_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    fail("SMILES {}: {}", in_quotes(text_), reason);
  }

  // Error if an atom is missing before `what`.
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
      if (before_ == "(") refuse("an atom is missing before (");
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

  void take_ring(const std::string& token, int64_t number) {
    check_atom(token);
    if (before_ == "(") refuse(fmt::format("an atom is missing before {}", token));
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

  void close_ring(const Ring& ring, int64_t number) {
    if (ring.bond && written_ && ring.bond->type != written_->type)
      refuse(fmt::format(
          "ring {} begins with one bond and ends with another; write it once, or the same twice",
          number));
    // A direction leads away from the atom that it is written next to.
    const bool is_first = ring.atom < here_;
    std::optional<WrittenBond> bond = ring.bond ? ring.bond : written_;
    if (bond && ring.bond.has_value() != is_first) bond->direction = turned(bond->direction);
    add_bond(std::min(ring.atom, here_), std::max(ring.atom, here_), bond, number);
  }

  void add_bond(int64_t first, int64_t second, const std::optional<WrittenBond>& written,
                int64_t ring) {
    if (!pairs_.emplace(first, second).second)
      refuse(fmt::format("ring {} binds atoms {} and {}, which are already bound", ring, first + 1,
                         second + 1));
    // "*" may be any atom, also an aromatic one.
    const auto can_be_aromatic = [&](int64_t atom) {
      const Atom& own = molecule_.atoms[static_cast<size_t>(atom)];
      return own.is_aromatic || own.element == "*";
    };
    const bool has_aromatic = molecule_.atoms[static_cast<size_t>(first)].is_aromatic ||
                              molecule_.atoms[static_cast<size_t>(second)].is_aromatic;
    Bond bond{first, second};
    if (written) {
      bond.type = written->type;
      bond.direction = written->direction;
    } else if (has_aromatic && can_be_aromatic(first) && can_be_aromatic(second)) {
      bond.type = BondType::aromatic;
      unwritten_.push_back(molecule_.bonds.size());
    }
    molecule_.bonds.push_back(bond);
  }

  std::string_view text_;
  Molecule molecule_;
  std::string before_;                  // previous token
  int64_t here_ = -1;                   // the atom that the next one is bound to
  std::optional<WrittenBond> written_;  // bond written after that atom
  std::vector<int64_t> branches_;       // atoms at which open branches begin
  std::map<int64_t, Ring> rings_;       // open rings
  std::set<std::pair<int64_t, int64_t>> pairs_;
  std::vector<size_t> unwritten_;  // bonds that are aromatic if they are in a ring
};

}  // namespace

int64_t lines_of(BondType type) {
  return type <= BondType::fourfold ? static_cast<int64_t>(type) + 1 : 1;
}

Molecule read_molecule(std::string_view smiles) { return MoleculeReader(smiles).read(); }

}  // namespace attend
