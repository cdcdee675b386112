#include "attend/explain/shown.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "attend/base/error.h"
#include "attend/explain/contacts.h"
#include "attend/explain/explanation_json.h"
#include "attend/explain/knock_out.h"
#include "attend/explain/layer_answers.h"
#include "attend/explain/map_graph.h"
#include "attend/explain/score_parts.h"
#include "attend/explain/weight_grids.h"
#include "attend/files/image.h"
#include "attend/pictures/source_panels.h"
#include "attend/pictures/thumbnail.h"

namespace attend {
namespace {

const MethodRow& shown_method(const Explanation& explanation, const ShowOptions& options) {
  return options.method.empty() ? default_method(explanation) : find_method(options.method);
}

void add_map(const ShowOptions& options, const std::vector<std::string>& rows,
             const std::vector<std::string>& columns, const at::Tensor& map,
             const std::string& title, std::vector<Alignment>& maps) {
  if (!options.words) {
    maps.push_back({columns, rows, grid_of(map), title});
    return;
  }
  const WordGroups row_words = group_words(rows), column_words = group_words(columns);
  maps.push_back({column_words.words, row_words.words,
                  grid_of(merge_words(map, row_words, column_words)), title});
}

// The attention weights need no title unless they are asked for.
std::string map_title(const ShowOptions& options, const MethodRow& row, const Subject& subject) {
  const bool named = !options.method.empty() || row.default_for != DefaultFor::answers;
  const std::string_view name = named ? row.name : "";
  if (!subject.against.defined()) return std::string(name);
  return fmt::format("{}{}not {}", name, named ? ", " : "", subject.against_text);
}

void show_method(const ShowOptions& options, const Explanation& explanation, Shown& shown) {
  const Subject& subject = explanation.subject();
  if (options.evidence) explanation.trace();  // the tests read all parts
  const MethodRow& row = shown_method(explanation, options);
  const at::Tensor scores = method_scores(row, explanation, options.choice);
  TestedMethod method{&row, scores.slice(0, 0, std::ssize(subject.target))};
  if (options.evidence)
    method.card =
        evidence_card(EvidenceTester(explanation).measure(row, scores, {}, options.choice));
  const std::string title = map_title(options, row, subject);
  add_map(options, subject.target, subject.source, drawn_scores(row, method.scores).to(at::kFloat),
          title, shown.maps);
  if (row.scale != ScoreScale::weights) {
    std::vector<Alignment> exact;
    add_map(options, subject.target, subject.source, method.scores.to(at::kFloat), title, exact);
    shown.maps.back().scores = exact[0].weights;
  }
  shown.methods.push_back(std::move(method));
}

std::vector<LayerMap> viewed_layers(const ShowOptions& options, const Explanation& explanation) {
  auto maps = layer_maps(explanation.subject(), explanation.trace(TraceParts::attentions));
  if (maps.empty())
    fail("view {}: nothing in the model attends with weights; take the method gradient",
         name_of(options.view));
  return maps;
}

LayerMap one_head(const LayerMap& map, int64_t head) {
  const int64_t heads = map.weights.size(0);
  if (head < 1 || head > heads) fail("head {}: {} has {}", head, map.name, heads);
  LayerMap one = map;
  one.weights = map.weights.narrow(0, head - 1, 1);
  return one;
}

void show_graph(const ShowOptions& options, const Explanation& explanation, Shown& shown) {
  if (options.choice.layer)
    fail("layer {}: the view graph shows all layers; take the view heads", *options.choice.layer);
  std::vector<LayerMap> maps = viewed_layers(options, explanation);
  for (LayerMap& map : maps) {
    if (options.choice.head) map = one_head(map, *options.choice.head);
    if (options.words) map = merge_words(map);
  }
  shown.graph = layer_graph(maps);
  shown.graph->around_first = explanation.subject().model.graph != nullptr;
}

std::string numbered_names(const std::vector<LayerMap>& maps) {
  std::string names;
  for (size_t i = 0; i < maps.size(); ++i)
    names += fmt::format("{}{} {}", i == 0 ? "" : ", ", i + 1, maps[i].name);
  return names;
}

void show_layers(const ShowOptions& options, const Explanation& explanation, Shown& shown) {
  const std::vector<LayerMap> maps = viewed_layers(options, explanation);
  const auto layer = options.choice.layer.value_or(std::ssize(maps));
  if (layer < 1 || layer > std::ssize(maps))
    fail("layer {}: there are {} in the view {}: {}", layer, maps.size(), name_of(options.view),
         numbered_names(maps));
  const bool all = options.view == ExplanationView::model && !options.choice.layer;
  const std::vector<HeadPatterns>& patterns = explanation.patterns();
  for (size_t i = 0; i < maps.size(); ++i) {
    if (!all && static_cast<int64_t>(i) + 1 != layer) continue;
    if (shown.maps.empty()) shown.is_one_sequence = is_self_attention(maps[i].site);
    const int64_t first = options.choice.head.value_or(1);
    const int64_t last = options.choice.head.value_or(maps[i].weights.size(0));
    for (int64_t head = first; head <= last; ++head) {
      add_map(options, maps[i].rows, maps[i].columns, one_head(maps[i], head).weights[0],
              fmt::format("{}, head {}", maps[i].name, head), shown.maps);
      shown.patterns.push_back(patterns_of(patterns, maps[i].site, head - 1));
    }
  }
}

// Tokens that any layer predicts, and the answer's; the most probable of the last layer first.
std::vector<int64_t> lens_tokens(const at::Tensor& probabilities, int64_t answer) {
  std::set<int64_t> any = {answer};
  for (const at::Tensor& layer : probabilities.unbind()) any.insert(layer.argmax().item<int64_t>());
  std::vector<int64_t> tokens(any.begin(), any.end());
  const at::Tensor last = probabilities[-1];
  std::stable_sort(tokens.begin(), tokens.end(), [&](int64_t a, int64_t b) {
    return last[a].item<double>() > last[b].item<double>();
  });
  return tokens;
}

// Adds one map per token of the answer: the probabilities of tokens at its position after each
// layer.
void show_lens(const ShowOptions& options, const Explanation& explanation, Shown& shown) {
  const Subject& subject = explanation.subject();
  if (options.choice.layer || options.choice.head)
    fail("view lens: shows the output of all layers; leave layer and head out");
  if (const AnswerKind& kind = subject.model.answer_kind(); !kind.has_probabilities())
    fail("view lens: the answer is a {}, which has no probability", kind.name());
  const LayerAnswers answers = layer_answers(explanation);
  if (answers.layers.empty())
    fail(
        "view lens: models of this type do not report layers to read answers off; take another "
        "view");
  for (int64_t t = 0; t < std::ssize(subject.target); ++t) {
    const at::Tensor probabilities = answers.log_probabilities.select(1, t).exp();
    const std::vector<int64_t> ids =
        lens_tokens(probabilities, subject.batch.target[0][t].item<int64_t>());
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const int64_t id : ids) tokens.push_back(target_name(subject, id));
    shown.maps.push_back(
        {answers.layers, tokens,
         grid_of(probabilities.index_select(1, at::tensor(ids)).t().contiguous()),
         fmt::format("place {}: {}", t + 1, subject.target[static_cast<size_t>(t)])});
  }
}

void show_contacts(const ShowOptions& options, const Explanation& explanation, Shown& shown) {
  if (!options.method.empty() || options.choice.layer || options.choice.head)
    fail("view contacts: reads all heads without a method; leave method, layer and head out");
  const ContactMap contacts = contact_map(explanation);
  shown.is_one_sequence = true;
  shown.maps.push_back({contacts.tokens, contacts.tokens,
                        grid_of(contacts.probabilities.to(at::kFloat)), "contacts"});
}

void show_scores(const ShowOptions& options, const Explanation& explanation, Shown& shown) {
  if (!options.method.empty() || options.choice.layer || options.choice.head || options.words)
    fail("view scores: at names the head; leave method, layer, head and words out");
  const ScoreParts made = score_parts(explanation, options.edge);
  const std::string title =
      fmt::format("{}, {} on {}: score {:.4f}, weight {:.4f}", made.head, in_quotes(made.query),
                  in_quotes(made.key), made.score, made.weight);
  shown.sum = {title, "score", {{"score", made.score}, {"weight", made.weight}}, {}};
  add_largest(made.parts, made.queries, made.keys, *shown.sum);
  shown.maps.push_back(sum_map(made.parts, made.queries, made.keys, title));
}

// Adds a map with a row per attention and a column per head. Missing heads are NaN.
void show_effects(const ShowOptions& options, const Explanation& explanation, Shown& shown) {
  if (!options.method.empty() || options.choice.layer || options.choice.head)
    fail("view effects: shows all heads without a method; leave method, layer and head out");
  Alignment map;
  map.title = "effect of each head";
  std::vector<std::vector<double>> rows;
  double sum = 0;
  for (const HeadEffect& one : head_effects(explanation, options.ablation)) {
    const std::string key = attention_key(one.head.site);
    if (map.target.empty() || map.target.back() != key) {
      map.target.push_back(key);
      rows.emplace_back();
    }
    rows.back().push_back(one.effect);
    sum += std::abs(one.effect);
    if (rows.back().size() > map.source.size())
      map.source.push_back(fmt::format("head {}", rows.back().size()));
  }
  at::Tensor effects = at::full({std::ssize(rows), std::ssize(map.source)}, NAN, at::kDouble);
  for (size_t row = 0; row < rows.size(); ++row)
    effects[static_cast<int64_t>(row)]
        .slice(0, 0, std::ssize(rows[row]))
        .copy_(at::tensor(rows[row], at::kDouble));
  map.weights = grid_of((effects.abs() / (sum > 0 ? sum : 1)).to(at::kFloat));
  map.scores = grid_of(effects.to(at::kFloat));
  shown.maps.push_back(std::move(map));
}

}  // namespace

std::optional<SourcePicture> source_picture(const Model& model, const std::string& name) {
  if (!model.has_source_image()) return std::nullopt;
  const auto [image, rows, columns] = model.source_image(name);
  return SourcePicture{png_bytes(image), image.height, image.width, rows, columns};
}

Shown show(const Explanation& explanation, const ShowOptions& options) {
  if (options.evidence && options.view != ExplanationView::alignment)
    fail("evidence: needs the map of a method; leave the view {} out", name_of(options.view));
  if (!options.edge.empty() && options.view != ExplanationView::scores)
    fail("at: names a score for the view scores; take that view");
  Shown shown;
  switch (options.view) {
    case ExplanationView::alignment:
      show_method(options, explanation, shown);
      break;
    case ExplanationView::graph:
      show_graph(options, explanation, shown);
      break;
    case ExplanationView::lens:
      show_lens(options, explanation, shown);
      break;
    case ExplanationView::heads:
    case ExplanationView::model:
      show_layers(options, explanation, shown);
      break;
    case ExplanationView::effects:
      show_effects(options, explanation, shown);
      break;
    case ExplanationView::contacts:
      show_contacts(options, explanation, shown);
      break;
    case ExplanationView::scores:
      show_scores(options, explanation, shown);
      break;
  }
  return shown;
}

TestedMethods first_method(const Explanation& explanation, const ShowOptions& options) {
  const Subject& subject = explanation.subject();
  const MethodRow& row = shown_method(explanation, options);
  const at::Tensor scores = method_scores(row, explanation, options.choice);
  return {.methods = {{&row, scores.slice(0, 0, std::ssize(subject.target))}}};
}

std::vector<Alignment> titled_maps(const Shown& shown) {
  std::vector<Alignment> maps = shown.maps;
  for (size_t i = 0; i < shown.patterns.size(); ++i)
    if (const std::string pattern = named_pattern(shown.patterns[i]); !pattern.empty())
      maps[i].title += ": " + pattern;
  return maps;
}

std::string shown_json(const Shown& shown) {
  if (shown.sum) return sum_json(shown.maps[0], *shown.sum) + '\n';
  std::string lines;
  for (size_t i = 0; i < shown.maps.size(); ++i) {
    lines += alignment_json(
                 shown.maps[i],
                 i < shown.methods.size() ? shown.methods[i].card : std::vector<EvidenceFigure>{},
                 i < shown.patterns.size() ? shown.patterns[i] : HeadPatterns{}) +
             '\n';
  }
  return lines;
}

std::string shown_svg(const Shown& shown) {
  constexpr int64_t columns = 4;
  const std::vector<Alignment> maps = titled_maps(shown);
  if (maps.size() > 1) return thumbnails_svg(maps, columns);
  const Alignment& map = maps[0];
  return shown.picture ? panels_svg(map, *shown.picture) : alignment_svg(map);
}

}  // namespace attend
