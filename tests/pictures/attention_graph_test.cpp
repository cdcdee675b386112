#include "attend/pictures/attention_graph.h"

#include <glib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <regex>

#include "attend/base/error.h"
#include "tests/pictures/support.h"

namespace attend {
namespace attention_graph_test {

using testing::ElementsAre;
using testing::HasSubstr;

// "0>2:0.5" for each edge.
std::vector<std::string> edges_of(const AttentionGraph& graph) {
  std::vector<std::string> edges;
  for (const GraphEdge& edge : graph.edges)
    edges.push_back(fmt::format("{}>{}:{}", edge.from, edge.to, edge.weight));
  return edges;
}

WeightGrid three_words() { return {3, 3, {0.5, 0.25, 0.25, 0.0, 1.0, 0.0, 0.125, 0.75, 0.125}}; }

const std::vector<std::string> words = {"a", "b", "c"};

TEST(AttentionGraph, HasAnEdgeForEachWeightAboveTheThreshold) {
  EXPECT_THAT(edges_of(attention_graph(words, {three_words()})),
              ElementsAre("0>0:0.5", "0>1:0.25", "0>2:0.25", "1>1:1", "2>0:0.125", "2>1:0.75",
                          "2>2:0.125"));
  EXPECT_THAT(edges_of(attention_graph(words, {three_words()}, {.threshold = 0.25})),
              ElementsAre("0>0:0.5", "1>1:1", "2>1:0.75"));
}

TEST(AttentionGraph, KeepsTheLargestOfEachRow) {
  EXPECT_THAT(edges_of(attention_graph(words, {three_words()}, {.largest = 2})),
              ElementsAre("0>0:0.5", "0>1:0.25", "1>1:1", "2>0:0.125", "2>1:0.75"));
}

TEST(AttentionGraph, JoinsBothDirections) {
  const AttentionGraph graph = attention_graph(words, {three_words()}, {.undirected = true});
  EXPECT_FALSE(graph.directed);
  EXPECT_THAT(edges_of(graph),
              ElementsAre("0>0:0.5", "0>1:0.125", "0>2:0.1875", "1>1:1", "1>2:0.375", "2>2:0.125"));
  // {1, 2} is the largest edge of 2; {0, 2} is the largest of neither end.
  EXPECT_THAT(edges_of(attention_graph(words, {three_words()}, {.largest = 1, .undirected = true})),
              ElementsAre("0>0:0.5", "1>1:1", "1>2:0.375"));
}

TEST(AttentionGraph, TellsHeadsApartAndPassesOverWhatIsNotFinite) {
  const WeightGrid second = {3,
                             3,
                             {0, std::numeric_limits<double>::infinity(), 0, 0, -1, 0, 0.5,
                              std::numeric_limits<double>::quiet_NaN(), 0}};
  const AttentionGraph graph = attention_graph(words, {three_words(), second});
  ASSERT_EQ(graph.edges.size(), 8);
  EXPECT_EQ(graph.heads, 2);
  EXPECT_EQ(graph.edges[6].head, 0);
  EXPECT_EQ(graph.edges[7].head, 1);
  EXPECT_EQ(graph.edges[7].from, 2);
  EXPECT_EQ(graph.edges[7].to, 0);
  EXPECT_THAT(graph_graphml(graph), HasSubstr("<data key=\"head\">1</data>"));
  EXPECT_THAT(graph_dot(graph), HasSubstr("n2 -> n0 [weight=0.5, penwidth=2.10, head=1];"));
}

TEST(AttentionGraph, OfNothingIsEmpty) {
  const AttentionGraph graph = attention_graph({}, {WeightGrid{}});
  EXPECT_TRUE(graph.edges.empty());
  EXPECT_EQ(graph_dot(graph), "digraph attention {\n  layout=circo;\n}\n");
}

// The visible content of a document.
struct Read {
  std::vector<std::string> labels;
  std::vector<std::string> edges;
  std::string kind, title;
};

struct GraphmlReader {
  Read read;
  std::string key, text;

  static void start(GMarkupParseContext*, const char* name, const char** names, const char** values,
                    void* self, GError**) {
    auto& reader = *static_cast<GraphmlReader*>(self);
    std::map<std::string, std::string> attributes;
    for (size_t i = 0; names[i] != nullptr; ++i) attributes[names[i]] = values[i];
    if (std::string(name) == "edge")
      reader.read.edges.push_back(attributes["source"] + ">" + attributes["target"]);
    if (std::string(name) == "graph") reader.read.kind = attributes["edgedefault"];
    reader.key = attributes["key"];
    reader.text.clear();
  }

  static void end(GMarkupParseContext*, const char* name, void* self, GError**) {
    auto& reader = *static_cast<GraphmlReader*>(self);
    if (reader.key == "label") reader.read.labels.push_back(reader.text);
    if (reader.key == "weight") reader.read.edges.back() += ":" + reader.text;
    if (std::string(name) == "desc") reader.read.title = reader.text;
    reader.key.clear();
  }

  static void characters(GMarkupParseContext*, const char* text, gsize length, void* self,
                         GError**) {
    static_cast<GraphmlReader*>(self)->text.append(text, length);
  }
};

Read read_graphml(const std::string& document) {
  GraphmlReader reader;
  const GMarkupParser parser = {GraphmlReader::start, GraphmlReader::end, GraphmlReader::characters,
                                nullptr, nullptr};
  GMarkupParseContext* context = g_markup_parse_context_new(&parser, {}, &reader, nullptr);
  EXPECT_TRUE(g_markup_parse_context_parse(context, document.data(),
                                           static_cast<gssize>(document.size()), nullptr));
  EXPECT_TRUE(g_markup_parse_context_end_parse(context, nullptr));
  g_markup_parse_context_free(context);
  return reader.read;
}

// Reads a quoted label like Graphviz: first \" and \\, then entities.
std::string unquoted(const std::string& quoted) {
  std::string text;
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '\\') ++i;
    text += quoted.at(i);
  }
  return std::regex_replace(text, std::regex("&amp;"), "&");
}

Read read_dot(const std::string& document) {
  Read read;
  static const std::regex node(R"re(  n\d+ \[label="((?:[^"\\]|\\.)*)"\];)re");
  static const std::regex edge(R"re(  (n\d+) -[->] (n\d+) \[weight=([^,]+), penwidth=[\d.]+\];)re");
  static const std::regex title(R"re(  label="((?:[^"\\]|\\.)*)";)re");
  std::istringstream lines(document);
  std::string line;
  std::smatch match;
  std::getline(lines, read.kind);
  while (std::getline(lines, line)) {
    if (std::regex_match(line, match, node))
      read.labels.push_back(unquoted(match[1]));
    else if (std::regex_match(line, match, edge))
      read.edges.push_back(fmt::format("{}>{}:{}", match[1].str(), match[2].str(), match[3].str()));
    else if (std::regex_match(line, match, title))
      read.title = unquoted(match[1]);
    else
      EXPECT_TRUE(line == "  layout=circo;" || line == "}") << line;
  }
  return read;
}

TEST(AttentionGraph, ReadsBackWithHostileLabels) {
  const std::vector<std::string> labels = {"plain",
                                           "</data><node id=\"x\">",
                                           "a\"]; n9 -> n9 [x=\"",
                                           "\\",
                                           "\\\"",
                                           "&amp;",
                                           "]]>",
                                           "\xC3\xA9 \xE2\x82\xAC",
                                           "new\nline",
                                           "\x01\xFF",
                                           "",
                                           "<b>",
                                           "\\N"};
  const std::vector<std::string> shown = {"plain",
                                          "</data><node id=\"x\">",
                                          "a\"]; n9 -> n9 [x=\"",
                                          "\\",
                                          "\\\"",
                                          "&amp;",
                                          "]]>",
                                          "\xC3\xA9 \xE2\x82\xAC",
                                          "new\xE2\x86\xB5line",
                                          "\xE2\x90\x81\xEF\xBF\xBD",
                                          "",
                                          "<b>",
                                          "\\N"};
  const auto count = static_cast<int64_t>(labels.size());
  WeightGrid weights = identity(count);
  for (double& weight : weights.values) weight *= 0.1;
  AttentionGraph graph = attention_graph(labels, {weights});
  graph.title = "\"<&\\";
  std::vector<std::string> edges;
  for (int64_t i = 0; i < count; ++i) edges.push_back(fmt::format("n{}>n{}:0.1", i, i));
  const Read graphml = read_graphml(graph_graphml(graph)), dot = read_dot(graph_dot(graph));
  EXPECT_EQ(graphml.labels, shown);
  EXPECT_EQ(dot.labels, shown);
  EXPECT_EQ(graphml.edges, edges);
  EXPECT_EQ(dot.edges, edges);
  EXPECT_EQ(graphml.title, graph.title);
  EXPECT_EQ(dot.title, graph.title);
  EXPECT_EQ(graphml.kind, "directed");
  EXPECT_EQ(dot.kind, "digraph attention {");
  graph.directed = false;
  EXPECT_EQ(read_graphml(graph_graphml(graph)).kind, "undirected");
  EXPECT_EQ(read_dot(graph_dot(graph)).edges, edges);
  EXPECT_THAT(graph_dot(graph),
              testing::AllOf(testing::StartsWith("graph attention {"), HasSubstr("n0 -- n0"),
                             testing::Not(HasSubstr("->"
                                                    " n0"))));
}

TEST(AttentionGraph, RefusesMisuse) {
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no Error";
  };
  EXPECT_THAT(message([] { attention_graph(words, {zeros(2, 3)}); }),
              HasSubstr("weights have shape [2, 3]; 3 tokens need [3, 3]"));
  EXPECT_THAT(message([] {
                attention_graph(words, {WeightGrid{3, 3, {1}}});
              }),
              HasSubstr("1 weights have shape [3, 3]"));
  EXPECT_THAT(message([] { attention_graph(words, {three_words()}, {.threshold = -1}); }),
              HasSubstr("threshold is -1, largest 0; both must be 0 or more"));
  EXPECT_THAT(message([] { attention_graph(words, {three_words()}, {.largest = -1}); }),
              HasSubstr("largest -1"));
}

}  // namespace attention_graph_test
}  // namespace attend
