#include "attend/data/source_key.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "attend/base/error.h"
#include "attend/text/molecule.h"
#include "attend/text/units.h"

namespace attend {
namespace {

std::string molecule_key(const std::string& source) { return canonical_key(read_molecule(source)); }

// Source units with several spellings of the same thing.
struct Spelled {
  std::string_view units;
  std::string (*key)(const std::string& source);
};

constexpr Spelled spelled[] = {{"smiles", molecule_key}, {"molecule", molecule_key}};

}  // namespace

std::string source_key(const std::string& source, const TextConfig& text) {
  for (const Spelled& row : spelled)
    if (text.source_units == row.units) return row.key(source);
  return to_nfc(source);
}

int64_t count_spellings(const std::vector<std::string>& sources) {
  std::set<std::string> keys, texts;
  for (const std::string& source : sources) {
    if (!texts.insert(source).second) continue;
    try {
      keys.insert(molecule_key(source));
    } catch (const Error&) {
      return 0;
    }
  }
  return std::ssize(texts) - std::ssize(keys);
}

}  // namespace attend
