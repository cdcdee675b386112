#include "attend/nn/mechanism_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "attend/base/error.h"
#include "attend/ops/biases.h"
#include "attend/ops/normalisers.h"
#include "attend/ops/scores.h"

namespace attend {
namespace mechanism_table_test {

// Mechanisms without a kernel or running sums hold all weights.
TEST(MechanismTable, SaysWhatHoldsAllWeights) {
  for (const Mechanism& row : mechanism_table()) {
    const NormaliserRow& normaliser = Normaliser(row.choices.normaliser).row();
    const bool fused = score_row(row.choices.score).family.has_value() &&
                       (normaliser.kernel || normaliser.running_sums);
    EXPECT_EQ(row.paths.starts_with("composed"), !fused) << row.name;
    const std::vector<BiasChoice> biases = parse_biases(row.choices.bias);
    const bool dense = std::any_of(biases.begin(), biases.end(),
                                   [](const BiasChoice& bias) { return bias.row->is_dense; });
    EXPECT_EQ(row.space.starts_with("n m"),
              !fused || dense || score_row(row.choices.score).map_past)
        << row.name;
  }
}

// Mechanisms named in the plan.
const std::vector<const char*> planned = {"bahdanau",
                                          "luong_dot",
                                          "luong_general",
                                          "luong_concat",
                                          "luong_location",
                                          "local_m",
                                          "local_p",
                                          "content_addressing",
                                          "soft_addressing",
                                          "fixed_dot",
                                          "fixed_mlp",
                                          "self",
                                          "masked_self",
                                          "cross",
                                          "hard",
                                          "gumbel",
                                          "monotonic",
                                          "intra",
                                          "intra_decoder",
                                          "sliding_window",
                                          "dilated",
                                          "global_tokens",
                                          "block_sparse",
                                          "linear",
                                          "performer",
                                          "linformer",
                                          "convolution",
                                          "alibi",
                                          "t5",
                                          "shaw",
                                          "rope",
                                          "partial_rope",
                                          "yarn",
                                          "llama3",
                                          "forget",
                                          "kerple_log",
                                          "kerple_power",
                                          "sandwich",
                                          "cope",
                                          "fire",
                                          "grid",
                                          "sinusoidal",
                                          "learned_positions",
                                          "sink",
                                          "sigmoid",
                                          "unnormalised",
                                          "temperature",
                                          "sparsemax",
                                          "entmax",
                                          "location_sensitive",
                                          "coverage",
                                          "gat",
                                          "squared_distance",
                                          "absolute_distance",
                                          "additive_without_v"};

TEST(MechanismTable, HasEveryMechanismOnce) {
  std::set<std::string_view> names;
  for (const Mechanism& row : mechanism_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    for (const std::string_view text : {row.title, row.source, row.formula, row.queries, row.memory,
                                        row.time, row.space, row.carries, row.paths})
      EXPECT_FALSE(text.empty()) << row.name;
    EXPECT_EQ(&mechanism(row.name), &row);
  }
  for (const char* wanted : planned) EXPECT_TRUE(names.contains(wanted)) << wanted;
}

TEST(MechanismTable, HasModulesAroundTheOperator) {
  for (const char* name : {"gated_attention", "differential", "latent", "moba", "nsa", "dsa",
                           "selective", "attention_residuals", "infini", "multi_token"}) {
    const Mechanism& row = mechanism(name);
    EXPECT_GE(row.year, 2024) << name;
    EXPECT_NO_THROW(mechanism(row.parent)) << name;
    EXPECT_FALSE(row.cache.empty()) << name;
  }
}

TEST(MechanismTable, RowsAgreeWithThemselves) {
  for (const Mechanism& row : mechanism_table()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(row.module.empty(), row.module_kind == ModuleKind::none);
    EXPECT_NO_THROW(check_choices(row.choices));
    AttentionChoices short_choices = row.choices;
    if (!row.short_scope.empty()) short_choices.scope = row.short_scope;
    EXPECT_NO_THROW(check_choices(short_choices));
  }
}

TEST(MechanismTable, RefusalsSayWhatToTake) {
  for (const Mechanism& row : mechanism_table()) {
    if (row.refusal.empty()) continue;
    EXPECT_THAT(std::string(row.refusal), testing::HasSubstr("take ")) << row.name;
  }
}

TEST(MechanismTable, SuggestsTheNearestName) {
  try {
    mechanism("luong_dott");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean luong_dot?"));
  }
}

}  // namespace mechanism_table_test
}  // namespace attend
