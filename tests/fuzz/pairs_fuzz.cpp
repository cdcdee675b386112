#include "attend/data/tokenised.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const auto examples = parse_pairs(fuzz::text(data, size), "input");
    for (const Example& example : examples) {
      fuzz::expect(example.targets.size() == 1);
      fuzz::expect(!split_units(example.source, Units::space).empty());
      for (const std::string& target : example.targets) {
        const auto tokens = split_units(target, Units::character, NormalForm::none);
        fuzz::expect(join_units(tokens, Units::character) == target);
      }
    }
    const TextCodecs codecs = {{.units = Units::character}, {.units = Units::space}};
    check_targets(tokenise_examples(examples, codecs).targets, "input");
  });
}
