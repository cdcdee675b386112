#include "attend/models/parameters_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "attend/data/safetensors.h"
#include "tests/support/files.h"

namespace attend {
namespace parameters_file_test {

TEST(ParametersFile, NamesOfOlderVersionsAreRead) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  const at::Tensor table = at::arange(6, at::kFloat).view({3, 2});
  write_safetensors(path, {{{"embedding.symbols.weight", table},
                            {"symbols.output", table + 1},
                            {"target.tokens.weight", table + 2}},
                           {}});
  const TensorFile file = read_weights(path);
  ASSERT_EQ(file.tensors.size(), 3U);
  EXPECT_TRUE(file.tensors.at("embedding.tokens.weight").equal(table));
  EXPECT_TRUE(file.tensors.at("symbols.output").equal(table + 1));
  EXPECT_TRUE(file.tensors.at("target.tokens.weight").equal(table + 2));
}

}  // namespace parameters_file_test
}  // namespace attend
