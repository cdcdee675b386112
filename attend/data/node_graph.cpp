#include "attend/data/node_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/files/compressed.h"
#include "attend/text/characters.h"
#include "attend/text/lines.h"
#include "attend/text/normalise.h"
#include "attend/text/units.h"
#include "attend/text/vocabulary.h"

namespace attend {
namespace {

using internal::between_tabs;
using internal::Lines;

struct Feature {
  int64_t number = 0;
  double value = 1;
};

struct Node {
  std::string name, split, label;
  std::vector<Feature> features;
};

std::string node_name(std::string_view text) {
  const auto words = split_words(text);
  if (words.empty()) fail("the node's name is empty");
  if (words[0] != text) fail("node {} has blanks; write it without them", in_quotes(text));
  return to_nfc(text);
}

Feature parse_feature(std::string_view text) {
  const size_t colon = text.find(':');
  const auto number = parse_number<int64_t>(text.substr(0, colon));
  if (!number || *number < 0 || *number >= max_features)
    fail("feature {} is not a number from 0 to {}, by itself or before a colon and its value",
         in_quotes(text), max_features - 1);
  if (colon == std::string_view::npos) return {*number};
  const auto value = parse_number<double>(text.substr(colon + 1));
  if (!value || !(std::abs(*value) <= std::numeric_limits<float>::max()))
    fail("the value of feature {} is not a finite number", in_quotes(text));
  return {*number, *value};
}

std::vector<Feature> parse_features(std::string_view text, bool normalise) {
  std::vector<Feature> features;
  for (const std::string_view word : split_words(text)) features.push_back(parse_feature(word));
  std::sort(features.begin(), features.end(),
            [](const Feature& a, const Feature& b) { return a.number < b.number; });
  double sum = 0;
  for (size_t i = 0; i < features.size(); ++i) {
    if (i > 0 && features[i].number == features[i - 1].number)
      fail("feature {} is given twice; give each once", features[i].number);
    sum += std::abs(features[i].value);
  }
  if (normalise && sum > 0)
    for (Feature& feature : features) feature.value /= sum;
  return features;
}

Node parse_node(std::string_view line, bool normalise) {
  internal::check_characters(line);
  const std::vector<std::string_view> fields = between_tabs(line);
  if (fields.size() != 3 && fields.size() != 4)
    fail("{} fields; a line is node TAB split TAB class TAB features", fields.size());
  Node node{node_name(fields[0]), std::string(fields[1]), std::string(fields[2]), {}};
  const bool answered = node.split != "-";
  if (answered && node.split != "train" && node.split != "valid" && node.split != "test")
    fail("split {} is unknown; take train, valid, test or -", in_quotes(node.split));
  if (answered && (split_words(node.label).empty() || node.label == "-"))
    fail("node {} has no class, and split {} needs one; give it, or take split -",
         in_quotes(node.name), node.split);
  if (fields.size() == 4) node.features = parse_features(fields[3], normalise);
  return node;
}

// Builds a graph from the lines of both files.
class GraphBuilder {
 public:
  GraphBuilder(const GraphConfig& config, PairCheck check, Tell tell, int64_t* bad)
      : config_(config), check_(std::move(check)), tell_(std::move(tell)), bad_(bad) {}

  void read_nodes(Lines& lines, const std::string& name) {
    each_line(lines, [&](std::string_view line) { add_node(line, lines.number()); });
    if (result_.names.empty() && !first_error_.empty()) fail("{}", first_error_);
    if (result_.names.empty()) fail("{}: holds no node", name);
    seen_.resize(result_.names.size());
  }

  void read_edges(Lines& lines) {
    each_line(lines, [&](std::string_view line) { add_edge(line, lines.number()); });
  }

  SplitData built() {
    std::vector<int64_t> offsets = {0}, neighbours;
    for (auto& list : seen_) {
      std::vector<int64_t> ordered;
      ordered.reserve(list.size());
      for (const auto& [node, line] : list) ordered.push_back(node);
      std::sort(ordered.begin(), ordered.end());
      neighbours.insert(neighbours.end(), ordered.begin(), ordered.end());
      offsets.push_back(std::ssize(neighbours));
    }
    result_.graph = std::make_shared<NodeGraph>(
        NodeGraph{at::tensor(offsets, at::kLong), at::tensor(neighbours, at::kLong),
                  at::tensor(feature_offsets_, at::kLong), at::tensor(features_, at::kLong),
                  at::tensor(values_, at::kFloat)});
    return std::move(result_);
  }

 private:
  template <class Add>
  void each_line(Lines& lines, const Add& add) {
    while (true) {
      const int64_t before = lines.number();
      try {
        std::string_view line;
        if (!lines.next_entry(line)) return;
        internal::at_line(lines, [&] { add(line); });
      } catch (const Error& error) {
        if (bad_ == nullptr || lines.number() == before) throw;
        if (++*bad_ == 1) first_error_ = error.what();
        if (tell_) tell_(error.what());
      }
    }
  }

  void add_node(std::string_view line, int64_t number) {
    Node node = parse_node(line, config_.normalise_features);
    if (check_ && node.split != "-") check_(node.name, node.label);
    static const Vocabulary fixed;
    for (int64_t id = 0; id < fixed.size(); ++id)
      if (node.name == fixed.token(id))
        fail("node {} is spelled as a fixed token; rename it", in_quotes(node.name));
    const auto [found, is_new] = places_.try_emplace(node.name, std::ssize(result_.names));
    if (!is_new)
      fail("node {} is in line {} too; give each node one line", in_quotes(node.name),
           node_lines_[static_cast<size_t>(found->second)]);
    node_lines_.push_back(number);
    for (const Feature& feature : node.features) {
      features_.push_back(feature.number);
      values_.push_back(static_cast<float>(feature.value));
    }
    feature_offsets_.push_back(std::ssize(features_));
    if (node.split != "-")
      (node.split == "train"   ? result_.train
       : node.split == "valid" ? result_.valid
                               : result_.test)
          .push_back({node.name, {node.label}, number});
    result_.names.push_back(std::move(node.name));
  }

  int64_t place_of(std::string_view text) const {
    const auto found = places_.find(node_name(text));
    if (found == places_.end())
      fail("node {} is not in nodes.tsv; add it there, or remove the edge", in_quotes(text));
    return found->second;
  }

  void see(int64_t from, int64_t to, int64_t number) {
    const auto [found, is_new] = seen_[static_cast<size_t>(to)].try_emplace(from, number);
    if (is_new) return;
    const auto name = [&](int64_t node) {
      return in_quotes(result_.names[static_cast<size_t>(node)]);
    };
    fail("the edge of {} and {} is in line {} too; give each edge once{}", name(from), name(to),
         found->second, config_.directed ? "" : ", in one of its directions");
  }

  void add_edge(std::string_view line, int64_t number) {
    internal::check_characters(line);
    const std::vector<std::string_view> fields =
        line.find('\t') == std::string_view::npos ? split_words(line) : between_tabs(line);
    if (fields.size() != 2)
      fail("{} fields; a line is two nodes between a TAB or blanks", fields.size());
    const int64_t from = place_of(fields[0]), to = place_of(fields[1]);
    if (from == to)
      fail("an edge of {} to itself; remove it, every node sees itself anyway",
           in_quotes(fields[0]));
    see(from, to, number);
    if (!config_.directed) see(to, from, number);
  }

  const GraphConfig& config_;
  const PairCheck check_;
  const Tell tell_;
  int64_t* const bad_;
  std::string first_error_;
  SplitData result_;
  std::unordered_map<std::string, int64_t> places_;
  std::vector<int64_t> node_lines_;
  std::vector<int64_t> feature_offsets_ = {0}, features_;
  std::vector<float> values_;
  std::vector<std::unordered_map<int64_t, int64_t>> seen_;  // line number per neighbour of each
                                                            // node
};

}  // namespace

Settings GraphConfig::settings() {
  return {{"data.directed", &directed,
           "whether edges have a direction: the second node sees the first; otherwise both see "
           "each other"},
          {"data.normalise_features", &normalise_features,
           "whether the features of a node are divided by the sum of their absolute values"}};
}

int64_t NodeGraph::feature_count() const {
  const auto* first = features.data_ptr<int64_t>();
  const auto* last = first + features.size(0);
  return first == last ? 1 : *std::max_element(first, last) + 1;
}

bool NodeGraph::operator==(const NodeGraph& other) const {
  return offsets.equal(other.offsets) && neighbours.equal(other.neighbours) &&
         feature_offsets.equal(other.feature_offsets) && features.equal(other.features) &&
         feature_values.equal(other.feature_values);
}

SplitData read_graph(const std::string& folder, const GraphConfig& config, const PairCheck& check,
                     const Tell& tell, int64_t* bad) {
  const std::string nodes_name = folder + "/nodes.tsv";
  Lines nodes(ByteReader(nodes_name), longest_line);
  Lines edges(ByteReader(folder + "/edges.tsv"), longest_line);
  GraphBuilder builder(config, check, tell, bad);
  builder.read_nodes(nodes, nodes_name);
  builder.read_edges(edges);
  return builder.built();
}

SplitData parse_graph(std::string_view nodes, const std::string& nodes_name, std::string_view edges,
                      const std::string& edges_name, const GraphConfig& config,
                      int64_t maximum_line) {
  Lines node_lines(nodes, nodes_name, maximum_line), edge_lines(edges, edges_name, maximum_line);
  GraphBuilder builder(config, {}, {}, nullptr);
  builder.read_nodes(node_lines, nodes_name);
  builder.read_edges(edge_lines);
  return builder.built();
}

}  // namespace attend
