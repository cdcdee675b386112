#include "attend/tokenizers/sentence_piece.h"
#include "tests/fuzz/fuzz.h"

// A SentencePiece model; a valid one encodes texts and decodes their ids.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  return fuzz::accept_errors([&] {
    const SentencePiece model = SentencePiece::parse(fuzz::text(data, size), "input");
    for (const std::string text : {"", " Low  lower abc\n", "e\u0301\u4E2D\xFF\xE2 <s>"}) {
      const std::vector<int32_t> ids = model.encode(text);
      for (const int32_t id : ids) fuzz::expect(id >= 0 && id < model.size());
      model.decode(ids);
    }
  });
}
