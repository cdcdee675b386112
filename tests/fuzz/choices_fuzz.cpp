#include <algorithm>
#include <array>

#include "attend/nn/attention_choices.h"
#include "attend/ops/biases.h"
#include "attend/ops/normalisers.h"
#include "attend/ops/scopes.h"
#include "tests/fuzz/fuzz.h"

namespace {

// The first lines of a text, one per field; missing ones are empty.
std::array<std::string, 4> fields(std::string_view text) {
  std::array<std::string, 4> lines;
  for (std::string& line : lines) {
    const size_t end = std::min(text.find('\n'), text.size());
    line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

// The four choices of a mechanism, one per line: score, scope, bias, normaliser.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  // Without a structured binding, which Clang 14 cannot capture in lambdas.
  const std::array<std::string, 4> lines = fields(fuzz::text(data, size));
  const std::string &score = lines[0], &scope = lines[1], &bias = lines[2], &normaliser = lines[3];
  fuzz::accept_errors(
      [&] {
        for (const BiasChoice& choice : parse_biases(bias))
          for (const int64_t number : choice.numbers)
            fuzz::expect(number >= 0 && number <= largest_bias_number);
      },
      "");
  fuzz::accept_errors(
      [&] {
        if (around_reach(scope)) return;
        // Some queries in the middle of the keys.
        const at::Tensor mask = scope_mask(shifted(parse_scope(scope), 2), 1, 1, 3, 7, at::kCPU);
        fuzz::expect(!mask.defined() || mask.numel() <= 3 * 7);
      },
      "");
  return fuzz::accept_errors(
      [&] {
        fuzz::expect(Normaliser(normaliser).options().temperature > 0);
        check_choices({score, scope, bias, normaliser});
      },
      "");
}
