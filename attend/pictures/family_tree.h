#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace attend {

// Works by year, each below the work that it changes.
struct FamilyTree {
  struct Member {
    std::string name;
    int year = 0;
    std::optional<size_t> parent;  // index of an earlier or equally old member; absent: a root
    size_t kind = 0;               // index of a name in `kinds`
  };
  std::vector<Member> members;
  std::vector<std::string> kinds;  // at most 8, each with its colour
};

// Returns a self-contained SVG document, light or dark as the viewer prefers: a line per member,
// placed by its year. Error if a parent does not exist, is younger or descends from its child, or
// if there are more kinds than colours.
std::string family_tree_svg(const FamilyTree& tree);

}  // namespace attend
