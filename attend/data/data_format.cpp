#include "attend/data/data_format.h"

#include <algorithm>
#include <set>

#include "attend/data/interactions.h"
#include "attend/data/node_graph.h"
#include "attend/data/tables.h"

namespace attend {
namespace {

using FormatCounts = std::vector<std::pair<std::string, int64_t>>;

Settings graph_settings(TextConfig& text) {
  Settings all = {text.target_setting()};
  append(all, text.graph.settings());
  return all;
}

SplitData read_items(const std::string& path, const TextConfig& text, const Tell& tell,
                     int64_t* bad) {
  const std::vector<ItemSequence> sequences = read_interactions(path, text.interactions, tell, bad);
  // The item before the last one is for validation.
  return {items_to_learn(sequences), next_items(sequences, 1), next_items(sequences)};
}

// Counts the test examples, which contain all items of each user.
FormatCounts count_items(const SplitData& data) {
  std::set<std::string_view> items;
  int64_t interactions = 0, longest = 0;
  for (const Example& user : data.test) {
    const std::vector<std::string_view> before = split_words(user.source);
    items.insert(before.begin(), before.end());
    items.insert(user.targets[0]);
    const int64_t count = std::ssize(before) + 1;
    interactions += count;
    longest = std::max(longest, count);
  }
  return {{"users", std::ssize(data.test)},
          {"items", std::ssize(items)},
          {"interactions", interactions},
          {"max_interactions_per_user", longest},
          {"users_to_learn_from", std::ssize(data.train)}};
}

SplitData read_nodes(const std::string& path, const TextConfig& text, const Tell& tell,
                     int64_t* bad) {
  return read_graph(path, text.graph, pair_check(text), tell, bad);
}

// Number of empty lists.
int64_t empty_lists(const at::Tensor& offsets) {
  return offsets.diff().eq(0).sum().item<int64_t>();
}

FormatCounts count_nodes(const SplitData& data) {
  std::set<std::string_view> classes;
  for (const Example& node : data.train) classes.insert(node.targets[0]);
  int64_t unlearned = 0;
  for (const auto* part : {&data.valid, &data.test})
    for (const Example& node : *part) unlearned += classes.contains(node.targets[0]) ? 0 : 1;
  return {{"nodes", data.graph->node_count()},
          {"nodes_to_learn_from", std::ssize(data.train)},
          {"nodes_to_validate_with", std::ssize(data.valid)},
          {"nodes_to_test_with", std::ssize(data.test)},
          {"classes_to_learn", std::ssize(classes)},
          {"nodes_of_other_classes", unlearned},
          {"neighbours_of_all_nodes", data.graph->neighbours.size(0)},
          {"nodes_without_neighbours", empty_lists(data.graph->offsets)},
          {"features", data.graph->feature_count()},
          {"nodes_without_features", empty_lists(data.graph->feature_offsets)}};
}

}  // namespace

const std::vector<DataFormatRow>& data_formats() {
  constexpr std::string_view no_third =
      "no user has three items; the last two are for validation and test, and training needs "
      "earlier ones";
  static const std::vector<DataFormatRow> formats = {
      {.format = DataFormat::pairs,
       .settings = [](TextConfig& text) { return text.pair_settings(); }},
      {.format = DataFormat::interactions,
       .settings = [](TextConfig& text) { return text.interactions.settings(); },
       .read = read_items,
       .counts = count_items,
       .wanted = "the file of interactions",
       .parts = "the last two items of a user are for validation and test, and data.user_column, "
                "data.item_column and data.time_column name the columns of a CSV file",
       .no_train = no_third,
       .no_valid = no_third,
       .no_test = "no user has two items"},
      {.format = DataFormat::graph,
       .settings = graph_settings,
       .read = read_nodes,
       .counts = count_nodes,
       .examples_file = "nodes.tsv",
       .wanted = "the folder with nodes.tsv and edges.tsv",
       .parts = "nodes.tsv assigns each node to a split",
       .no_train = "no node has split train; give some to train on",
       .no_valid = "no node has split valid; give some to validate on",
       .no_test = "no node has split test; give some to evaluate on",
       .no_skipping_reason = "a graph needs all its lines; mend the line",
       .has_graph = true}};
  return formats;
}

}  // namespace attend
