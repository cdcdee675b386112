#include "attend/explain/answer_page.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/explain/contacts.h"
#include "attend/explain/knock_out.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/vector_groups-inl.h"
#include "attend/explain/weight_grids.h"

namespace attend {
namespace {

// Token lists of a page. A sequence has one list per variant of its tokens, such as with a start
// token.
class TokenLists {
 public:
  explicit TokenLists(std::vector<PageTokens>& lists) : lists_(lists) {}

  // Returns the index of a list; adds the list if it is new.
  size_t place(Sequence sequence, const std::string& name, const std::vector<std::string>& tokens) {
    for (size_t i = 0; i < lists_.size(); ++i)
      if (sequences_[i] == sequence && lists_[i].tokens == tokens) return i;
    sequences_.push_back(sequence);
    lists_.push_back({name, tokens});
    return lists_.size() - 1;
  }

 private:
  std::vector<PageTokens>& lists_;
  std::vector<Sequence> sequences_;
};

using Tokens = std::vector<std::string>;

// A text of a pair among the tokens of a map.
struct TextRange {
  std::string name;
  int64_t begin, end;

  Tokens of(const Tokens& all) const { return {all.begin() + begin, all.begin() + end}; }
};

// Adds the parts of an encoder's map in which the tokens of one text of a pair read the other text.
void add_maps_between_texts(const Subject& subject, const LayerMap& map, const PageDetail& detail,
                            TokenLists& lists, std::vector<PageMap>& maps) {
  const int64_t length = subject.source_length(), second = subject.second_text();
  const bool reads_itself =
      map.row_sequence() == Sequence::source && map.column_sequence() == Sequence::source;
  if (second == length || !reads_itself) return;
  const int64_t count = std::ssize(map.columns), begin = count - length + second;
  const TextRange texts[] = {{"first text", 0, begin}, {"second text", begin, count}};
  for (const auto& [reader, read] : {std::pair{texts[1], texts[0]}, {texts[0], texts[1]}}) {
    PageMap shown;
    shown.name = fmt::format("{}, {} over the {}", map.name, reader.name, read.name);
    shown.rows = lists.place(Sequence::source, reader.name, reader.of(map.rows));
    shown.columns = lists.place(Sequence::source, read.name, read.of(map.columns));
    for (const at::Tensor& head : map.weights.unbind())
      shown.heads.push_back(page_head(
          head.slice(0, reader.begin, reader.end).slice(1, read.begin, read.end), detail));
    shown.notes.resize(shown.heads.size());
    maps.push_back(std::move(shown));
  }
}

// Adds a map for each attention with weights. Only one map's weights are in memory at a time.
void add_maps(const Explanation& explanation, const PageDetail& detail, TokenLists& lists,
              std::vector<PageMap>& maps) {
  const Subject& subject = explanation.subject();
  for (const TracedAttention& one : explanation.trace(TraceParts::attentions).attentions) {
    if (!one.has_weights()) continue;
    const LayerMap map = map_of(subject, one);
    PageMap shown;
    shown.name = map.name;
    shown.key = attention_key(map.site);
    shown.rows = lists.place(map.row_sequence(), map.name, map.rows);
    shown.columns = lists.place(map.column_sequence(), map.name, map.columns);
    for (int64_t head = 0; head < map.weights.size(0); ++head) {
      shown.heads.push_back(page_head(map.weights[head], detail));
      shown.notes.push_back(named_pattern(patterns_of(explanation.patterns(), map.site, head)));
    }
    maps.push_back(std::move(shown));
    add_maps_between_texts(subject, map, detail, lists, maps);
  }
}

// Adds the contacts after the maps that they result from.
void add_contacts(const Explanation& explanation, const PageDetail& detail, TokenLists& lists,
                  std::vector<PageMap>& maps) {
  const Subject& subject = explanation.subject();
  if (subject.network().contact_head() == nullptr || !text_tokens(subject).any().item<bool>())
    return;
  const ContactMap contacts = contact_map(explanation);
  PageMap shown;
  shown.name = "contacts";
  shown.rows = shown.columns = lists.place(Sequence::source, "text", contacts.tokens);
  shown.heads = {page_head(contacts.probabilities, detail)};
  shown.notes = {"all heads"};
  maps.push_back(std::move(shown));
}

// Detail for a page of these methods and of all attentions with weights.
PageDetail detail_of(const TestedMethods& tested, const NetworkTrace& trace) {
  int64_t heads = std::ssize(tested.methods), weights = 0;
  for (const TracedAttention& one : trace.attentions) {
    if (!one.has_weights()) continue;
    heads += one.heads();
    weights += one.heads() * one.rows() * one.columns();
  }
  return page_detail(heads, weights);
}

std::string slow_methods() {
  std::vector<std::string> names;
  for (const MethodRow& row : method_table())
    if (row.takes_long) names.emplace_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

TestedMethods test_methods(const Explanation& explanation, const MethodRow* only,
                           const MethodChoice& choice, const Report& report) {
  const at::NoGradGuard not_recorded;
  const Subject& subject = explanation.subject();
  std::optional<EvidenceTester> tester;
  TestedMethods tested;
  const bool in_short = only == nullptr && is_long(subject, choice);
  // The methods that a long source gets by default do not read blocks.
  const NetworkTrace& trace =
      explanation.trace(in_short ? TraceParts::attentions : TraceParts::blocks);
  if (in_short)
    tested.note = fmt::format(
        "the source is long: {} take minutes, and so do tests; name a method to see it tested",
        slow_methods());
  else if (const AnswerKind& kind = subject.model.answer_kind(); !kind.has_probabilities())
    tested.note = fmt::format("the answer is a {}, which has no probability to test the methods by",
                              kind.name());
  else if (!subject.target.empty())
    tester.emplace(explanation);
  int64_t done = 0;
  for (const MethodRow& row : method_table()) {
    if (report) report(done++, std::ssize(method_table()));
    if (only != nullptr && only != &row) continue;
    if (in_short && row.takes_long) continue;
    if (!refusal_reason(row, subject, trace).empty()) continue;
    try {
      const MethodChoice own = row.takes_head ? choice : MethodChoice{};
      const at::Tensor scores = method_scores(row, subject, trace, own);
      tested.methods.push_back({&row, scores.slice(0, 0, std::ssize(subject.target))});
      if (tester) tested.methods.back().card = evidence_card(tester->measure(row, scores, {}, own));
    } catch (const Error& error) {
      if (only != nullptr) throw;
      tested.note += fmt::format("{}{}", tested.note.empty() ? "" : "; ", error.what());
    }
  }
  return tested;
}

ExplanationPage answer_page(const Explanation& explanation, const TestedMethods& tested,
                            const std::optional<SourcePicture>& picture) {
  const at::NoGradGuard not_recorded;
  const Subject& subject = explanation.subject();
  const PageDetail detail = detail_of(tested, explanation.trace(TraceParts::attentions));
  ExplanationPage page;
  const bool frames = subject.batch.source.is_floating_point();
  page.title = fmt::format("{}{}", frames ? "" : subject.source_text + " -> ", subject.target_text);
  if (subject.against.defined()) page.title += ", not " + subject.against_text;
  page.note = tested.note;
  TokenLists lists(page.tokens);
  const size_t source = lists.place(Sequence::source, "source", subject.source);
  page.tokens[source].picture = picture;
  for (const TestedMethod& method : tested.methods) {
    PageMethod shown;
    shown.name = method.row->name;
    shown.meaning = fmt::format("{} ({})", method.row->meaning, method.row->paper);
    shown.columns = source;
    shown.rows = lists.place(Sequence::answer, "answer", subject.target);
    shown.weights = page_head(method.scores, detail);
    shown.card = method.card;
    page.methods.push_back(std::move(shown));
  }
  add_maps(explanation, detail, lists, page.maps);
  add_contacts(explanation, detail, lists, page.maps);
  page.lens = explanation.lens();
  if (page.lens) page.lens->columns = lists.place(Sequence::answer, "answer", subject.target);
  return page;
}

}  // namespace attend
