#include "attend/data/pairs.h"
#include "attend/data/split.h"
#include "attend/datasets/cmudict.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    std::string lines;
    const auto entries = parse_cmudict(fuzz::text(data, size), "input");
    for (const Pronounced& entry : entries) {
      part_of(entry.word);
      for (const auto& pronunciation : entry.pronunciations) {
        lines += entry.word + '\t' + pronunciation + '\n';
      }
    }
    // Training reads exactly what the split writes. Words are in NFC, so that none are merged.
    const auto examples = merge_references(parse_pairs(lines, "again"));
    fuzz::expect(examples.size() == entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      fuzz::expect(examples[i].source == entries[i].word);
      fuzz::expect(examples[i].targets == entries[i].pronunciations);
    }
  });
}
