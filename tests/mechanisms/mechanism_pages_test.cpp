#include "attend/mechanisms/mechanism_pages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "attend/mechanisms/mechanism_fit.h"
#include "attend/ops/recurrence.h"

namespace attend {
namespace mechanism_pages_test {

using testing::HasSubstr;

TEST(MechanismPages, AllOfThemHoldEveryRow) {
  const std::string text = mechanisms_text(), page = mechanisms_markdown();
  const nlohmann::json document = mechanisms_json();
  ASSERT_EQ(document["mechanisms"].size(), mechanism_table().size());
  size_t place = 0;
  for (const Mechanism& row : mechanism_table()) {
    // A space separates the longest name from its title.
    EXPECT_THAT(text, HasSubstr(fmt::format("  {} ", row.name)));
    EXPECT_THAT(text, HasSubstr(fmt::format(" {}", row.title))) << row.name;
    EXPECT_THAT(page, HasSubstr(fmt::format("### {}\n", row.name)));
    EXPECT_THAT(page, HasSubstr(compute_command_of(row)));
    EXPECT_EQ(document["mechanisms"][place++], mechanism_json(row));
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(MechanismPages, ARowNamesTheParametersOfChoicesAndModule) {
  const Mechanism& row = mechanism("linformer");
  const std::string text = mechanism_text(row);
  for (const ChoiceParameter& one : parameters_of(row))
    EXPECT_THAT(text, HasSubstr(fmt::format("{} [{}]", one.name, one.shape)));
  EXPECT_THAT(text, HasSubstr("the sequence shortened"));
}

// The family tree needs every parent, and no row is older than its parent.
TEST(MechanismPages, ParentsExistAndAreNotYounger) {
  const std::string tree = mechanisms_family_svg();
  size_t listed = 0;
  for (const ChangeName& change : change_names()) {
    EXPECT_EQ(change_name(change.change), change.name);
    listed += mechanisms_that_change(change.change).size();
  }
  EXPECT_EQ(listed, mechanism_table().size());
  for (const Mechanism& row : mechanism_table()) {
    EXPECT_GE(row.year, 2014) << row.name;
    EXPECT_THAT(tree, HasSubstr(fmt::format(">{}</text>", row.name)));
    if (!row.parent.empty()) {
      EXPECT_LE(mechanism(row.parent).year, row.year) << row.name;
    }
  }
  for (const RecurrenceRow& row : recurrence_table()) {
    EXPECT_THAT(tree, HasSubstr(fmt::format(">{}</text>", row.title)));
    if (!row.parent.empty()) {
      EXPECT_LE(recurrence_row(row.parent).year, row.year) << row.name;
    }
  }
}

SentencePair pair() {
  SentencePair made;
  made.source = {"the", "small", "tool"};
  made.target = {"das", "kleine", "Werkzeug"};
  made.annotations = at::eye(3);
  made.states = at::eye(3).flip(0);
  made.weights = at::eye(3);
  return made;
}

// The context of each target word is the annotation of one source word.
TEST(MechanismFit, FindsTheWeightsOfATranslation) {
  const FittedMap map = fitted_map(mechanism("bahdanau"), pair());
  EXPECT_EQ(map.queries, pair().target);
  EXPECT_EQ(map.keys, pair().source);
  EXPECT_TRUE(map.weights.argmax(1).equal(at::arange(3))) << map.weights;
  EXPECT_TRUE(map.weights.equal(fitted_map(mechanism("bahdanau"), pair()).weights));
}

TEST(MechanismFit, WordsDoNotLookAtThemselves) {
  const FittedMap map = fitted_map(mechanism("self"), pair());
  EXPECT_EQ(map.queries, pair().source);
  EXPECT_TRUE(map.weights.diagonal().equal(at::zeros({3})));
}

TEST(MechanismFit, ChoicesSuitTheSentence) {
  EXPECT_EQ(choices_for_sentence(mechanism("grid"), 9).bias, "grid:1x9");
  EXPECT_EQ(choices_for_sentence(mechanism("shaw"), 9).bias, "relative_keys:4");
  EXPECT_EQ(choices_for_sentence(mechanism("bahdanau"), 9).score, "additive");
}

}  // namespace mechanism_pages_test
}  // namespace attend
