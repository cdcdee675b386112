#include "attend/data/text_config.h"
#include "attend/models/language_model_config.h"
#include "attend/models/transformer_config.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace attend;

// Written configurations are read identically, and still describe a model if they did before.
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

// A model's config.toml; the first byte selects the part.
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
