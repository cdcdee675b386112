#include <algorithm>
#include <map>

#include "attend/mechanisms/mechanism_pages.h"
#include "attend/ops/recurrence.h"
#include "attend/pictures/family_tree.h"

namespace attend {
namespace {

constexpr ChangeName every_change[] = {
    {Change::score, "score", "The score"},
    {Change::scope, "scope", "The scope"},
    {Change::bias, "bias", "The bias"},
    {Change::normaliser, "normaliser", "The normaliser"},
    {Change::inputs, "inputs", "Queries, keys and positions"},
    {Change::module, "module", "Modules around the operator"},
};

}  // namespace

std::span<const ChangeName> change_names() { return every_change; }

std::string_view change_name(Change change) {
  return every_change[static_cast<size_t>(change)].name;
}

std::vector<const Mechanism*> mechanisms_that_change(Change change) {
  std::vector<const Mechanism*> rows;
  for (const Mechanism& row : mechanism_table())
    if (row.change == change) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](auto* a, auto* b) { return a->year < b->year; });
  return rows;
}

std::string mechanisms_family_svg() {
  FamilyTree tree;
  for (const ChangeName& one : every_change) tree.kinds.emplace_back(one.name);
  tree.kinds.emplace_back("recurrence");
  std::map<std::string_view, size_t> mechanisms, recurrences;
  for (const Mechanism& row : mechanism_table()) mechanisms.emplace(row.name, mechanisms.size());
  for (const RecurrenceRow& row : recurrence_table())
    recurrences.emplace(row.name, mechanisms.size() + recurrences.size());
  for (const Mechanism& row : mechanism_table()) {
    FamilyTree::Member member{std::string(row.name), row.year, {}, static_cast<size_t>(row.change)};
    if (!row.parent.empty()) member.parent = mechanisms.at(row.parent);
    tree.members.push_back(std::move(member));
  }
  for (const RecurrenceRow& row : recurrence_table())
    tree.members.push_back(
        {std::string(row.title), row.year,
         row.parent.empty() ? mechanisms.at(row.parent_mechanism) : recurrences.at(row.parent),
         tree.kinds.size() - 1});
  return family_tree_svg(tree);
}

}  // namespace attend
