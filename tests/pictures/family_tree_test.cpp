#include "attend/pictures/family_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace family_tree_test {

using testing::HasSubstr;

FamilyTree three() {
  FamilyTree tree;
  tree.members = {{"young", 2021, 2, 1}, {"root", 2015, {}, 0}, {"a<b", 2015, 1, 0}};
  tree.kinds = {"score", "scope"};
  return tree;
}

std::string refusal(const FamilyTree& tree) {
  try {
    return family_tree_svg(tree);
  } catch (const Error& error) {
    return error.what();
  }
}

// A child of the same year is to the right of its parent.
TEST(FamilyTree, PlacesMembersByDescentAndYear) {
  const std::string svg = family_tree_svg(three());
  EXPECT_THAT(svg, HasSubstr(">a&lt;b<"));
  EXPECT_THAT(svg, HasSubstr("<circle class=\"k0\" cx=\"14\" cy=\"52.5\""));
  EXPECT_THAT(svg, HasSubstr("<circle class=\"k0\" cx=\"25\" cy=\"65.5\""));
  EXPECT_THAT(svg, HasSubstr("<circle class=\"k1\" cx=\"458\" cy=\"78.5\""));
  EXPECT_THAT(svg, HasSubstr("d=\"M25 69.5V78.5H454M14 56.5V65.5H21\""));
  for (int year = 2015; year <= 2021; ++year)
    EXPECT_THAT(svg, HasSubstr(">" + std::to_string(year) + "<"));
}

TEST(FamilyTree, RefusesWhatCannotBeDrawn) {
  EXPECT_THAT(refusal({}), HasSubstr("nothing to draw"));
  FamilyTree tree = three();
  tree.members[0].parent = 3;
  EXPECT_THAT(refusal(tree), HasSubstr("young has parent 3, but there are 3 members"));
  tree = three();
  tree.members[0].year = 2014;
  EXPECT_THAT(refusal(tree), HasSubstr("young of 2014 has a parent of 2015"));
  tree = three();
  tree.members[1].parent = 2;
  EXPECT_THAT(refusal(tree), HasSubstr("3 members descend from themselves"));
  tree = three();
  tree.members[0].kind = 2;
  EXPECT_THAT(refusal(tree), HasSubstr("young is of kind 2; there are 2 kinds"));
}

}  // namespace family_tree_test
}  // namespace attend
