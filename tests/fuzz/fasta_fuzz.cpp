#include <algorithm>

#include "attend/text/fasta.h"
#include "attend/text/text_lines.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const std::string text = parse_fasta(fuzz::text(data, size), "input");
    fuzz::expect(text.ends_with('\n'));
    for (const std::string& line : parse_lines(text, "again")) {
      fuzz::expect(!line.empty());
      // Each sequence is valid by itself.
      fuzz::expect(parse_fasta(">name\n" + line, "again") == line + '\n');
    }
  });
}
