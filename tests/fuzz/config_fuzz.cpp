#include "attend/data/text_config.h"
#include "attend/models/language_model_config.h"
#include "attend/models/transformer_config.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace attend;

// What is read is written so that the same is read again; where it describes a model it still does.
template <class Config>
void read(std::string_view document) {
  Config config;
  parse_toml(config.settings(), document, "input");
  const std::string text = to_toml(config.settings(), true);
  Config same;
  parse_toml(same.settings(), text, "again");
  fuzz::expect(to_toml(same.settings(), true) == text);
  if constexpr (requires { config.check(); }) config.check();
}

}  // namespace

// config.toml of a model; the first byte says which part.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view document = fuzz::text(data + 1, size - 1);
  return fuzz::accept_errors(
      [&] {
        switch (data[0] % 3) {
          case 0:
            return read<TransformerConfig>(document);
          case 1:
            return read<LanguageModelConfig>(document);
          default:
            return read<TextConfig>(document);
        }
      },
      "");
}
