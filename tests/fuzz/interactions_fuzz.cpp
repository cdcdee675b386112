#include <unordered_set>

#include "attend/data/interactions.h"
#include "attend/text/units.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const auto sequences = parse_interactions(fuzz::text(data, size), "input", {});
    std::unordered_set<std::string> users;
    for (const ItemSequence& sequence : sequences) {
      fuzz::expect(users.insert(sequence.user).second && sequence.items.size() >= 2);
      for (const std::string& item : sequence.items)
        fuzz::expect(split_units(item, Units::space).size() == 1);
    }
    for (const Example& example : next_items(sequences))
      fuzz::expect(split_units(example.targets[0], Units::space).size() == 1);
  });
}
