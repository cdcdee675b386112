#include "attend/data/number_target.h"
#include "attend/text/smiles.h"
#include "attend/text/units.h"
#include "tests/fuzz/fuzz.h"

// A molecule, or a number.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  const std::string text(fuzz::text(data, size));
  fuzz::accept_errors([&] { target_number(number_text(target_number(text), 1)); }, "target ");
  return fuzz::accept_errors(
      [&] {
        const std::vector<std::string> tokens = split_smiles(text);
        const std::string joined = join_units(tokens, Units::smiles);
        fuzz::expect(text.find(joined) != std::string::npos);
        fuzz::expect(split_smiles(joined) == tokens);
      },
      "SMILES ");
}
