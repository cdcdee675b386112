#include "attend/base/settings.h"
#include "tests/fuzz/fuzz.h"

namespace {

struct Values {
  int64_t integer = 1;
  double number = 0.5;
  bool flag = true;
  std::string word = "one", text;

  attend::Settings settings() {
    return {{.key = "note", .value = &text},
            {.key = "model.integer", .value = &integer, .minimum = 0, .maximum = 1000},
            {.key = "model.flag", .value = &flag},
            {.key = "model.deep.number", .value = &number},
            {.key = "train.word", .value = &word, .choices = {"one", "two"}}};
  }
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    Values values;
    parse_toml(values.settings(), fuzz::text(data, size), "input");
    const std::string document = to_toml(values.settings(), true);
    Values same;
    parse_toml(same.settings(), document, "again");
    fuzz::expect(to_toml(same.settings(), true) == document);
    fuzz::expect(same.text == values.text && same.number == values.number);
  });
}
