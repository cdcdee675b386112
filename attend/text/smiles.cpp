#include "attend/text/smiles.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "attend/base/error.h"
#include "attend/text/characters.h"
#include "attend/text/molecule.h"
#include "attend/text/smiles-inl.h"

namespace attend {
namespace {

constexpr std::string_view long_atoms[] = {"Cl", "Br"};
constexpr std::string_view atoms = "BCNOPSFIbcnops*";
constexpr std::string_view long_bonds[] = {"->", "<-"};
constexpr std::string_view bonds = "-=#$:/\\~.";
constexpr size_t max_ring_digits = 5;  // within %( and )

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads one molecule, symbol by symbol.
class SymbolReader {
 public:
  explicit SymbolReader(std::string_view text) : text_(text), rest_(text) {}

  std::vector<std::string> read() {
    std::vector<std::string> tokens;
    while (!rest_.empty()) {
      const std::string_view token = rest_.substr(0, length_of_next());
      rest_.remove_prefix(token.size());
      follow(token);
      tokens.emplace_back(token);
    }
    if (open_branches_ > 0) refuse("a branch is opened by ( and not closed; close it by )");
    if (!open_rings_.empty())
      refuse(fmt::format("ring {0} is opened and not closed; its other atom takes {0} too",
                         *open_rings_.begin()));
    return tokens;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    fail("SMILES {}: {}", in_quotes(text_), reason);
  }

  size_t length_of_next() const {
    const char first = rest_[0];
    if (first == '[') return bracket_length();
    for (const std::string_view atom : long_atoms)
      if (rest_.starts_with(atom)) return atom.size();
    for (const std::string_view bond : long_bonds)
      if (rest_.starts_with(bond)) return bond.size();
    if (first == '%') return ring_length();
    if (is_digit(first) || first == '(' || first == ')' || atoms.find(first) != atoms.npos ||
        bonds.find(first) != bonds.npos)
      return 1;
    utf8proc_int32_t character = 0;
    const auto symbol = rest_.substr(0, internal::next_character(rest_, &character));
    refuse(
        fmt::format("{} at character {} is not a symbol of SMILES; put atoms other than B, C, N, "
                    "O, P, S, F, Cl, Br and I in brackets",
                    in_quotes(symbol), text_.size() - rest_.size() + 1));
  }

  size_t ring_length() const {
    if (rest_.size() >= 3 && is_digit(rest_[1]) && is_digit(rest_[2])) return 3;
    const size_t end = rest_.find(')');
    if (end != std::string_view::npos && internal::smiles_ring(rest_.substr(0, end + 1)))
      return end + 1;
    refuse("two digits follow %, as in %12, or up to five in parentheses, as in %(123)");
  }

  size_t bracket_length() const {
    const size_t end = rest_.find(']');
    if (end == std::string_view::npos) refuse("a bracket is opened by [ and not closed by ]");
    const std::string_view inside = rest_.substr(1, end - 1);
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             std::string_view("@+-:*").find(c) != std::string_view::npos;
    };
    if (inside.empty() || !std::all_of(inside.begin(), inside.end(), is_part))
      refuse(fmt::format("{} is not an atom; write one such as [C@@H] or [NH4+]",
                         in_quotes(rest_.substr(0, end + 1))));
    return end + 1;
  }

  void follow(std::string_view token) {
    if (token == "(") ++open_branches_;
    if (token == ")" && --open_branches_ < 0) refuse("a branch is closed by ) and not opened");
    const auto ring = internal::smiles_ring(token);
    if (ring && open_rings_.erase(*ring) == 0) open_rings_.insert(*ring);
  }

  std::string_view text_, rest_;
  int64_t open_branches_ = 0;
  std::set<int64_t> open_rings_;
};

}  // namespace

std::vector<std::string> internal::smiles_symbols(std::string_view text) {
  const size_t first = text.find_first_not_of(blank_characters);
  if (first == std::string_view::npos) return {};
  text.remove_prefix(first);
  return SymbolReader(text.substr(0, text.find_first_of(blank_characters))).read();
}

std::optional<int64_t> internal::smiles_ring(std::string_view symbol) {
  std::string_view digits = symbol;
  if (symbol.starts_with("%(") && symbol.ends_with(")"))
    digits = symbol.substr(2, symbol.size() - 3);
  else if (symbol.starts_with('%'))
    digits.remove_prefix(1);
  if (digits.empty() || digits.size() > max_ring_digits ||
      !std::all_of(digits.begin(), digits.end(), is_digit))
    return std::nullopt;
  int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

std::vector<std::string> split_smiles(std::string_view text) {
  read_molecule(text);  // throws the Error for invalid SMILES
  return internal::smiles_symbols(text);
}

}  // namespace attend
