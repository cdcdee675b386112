#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attend/base/files.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend {
namespace golden_test {

using nlohmann::json;

// Expected results of PyPI's tokenizers for random lines, from tools/tokenizers_check.py.
TEST(Golden, IdsAndTextsAreThoseOfPypisTokenizers) {
  const json cases = json::parse(read_file(GOLDEN));
  ASSERT_GE(cases.size(), 5u);
  for (const json& one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const Tokenizer tokenizer = Tokenizer::parse(one["tokenizer"].dump(), "golden");
    const std::string second = one["answers"][0]["text"];
    for (const json& answer : one["answers"]) {
      const std::string text = answer["text"];
      SCOPED_TRACE(answer["text"].dump());
      const Encoding alone = tokenizer.encode(text), both = tokenizer.encode(text, second);
      EXPECT_EQ(alone.ids, answer["ids"].get<std::vector<int32_t>>());
      EXPECT_EQ(both.ids, answer["pair"].get<std::vector<int32_t>>());
      EXPECT_EQ(both.types, answer["types"].get<std::vector<int32_t>>());
      EXPECT_EQ(tokenizer.decode(alone.ids), answer["decoded"].get<std::string>());
    }
  }
}

}  // namespace golden_test
}  // namespace attend
