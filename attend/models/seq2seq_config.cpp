#include "attend/models/seq2seq_config.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/nn/mechanism_table.h"

namespace attend {
namespace {

std::string query_syntax() {
  std::string help = "what a query consists of, joined by +: ";
  for (const QueryPart& part : query_part_table())
    help += fmt::format("{} ({}), ", part.name, part.meaning);
  return help + "empty: the mechanism's own";
}

void check_part(const std::string& part) {
  std::vector<std::string> names;
  names.reserve(query_part_table().size());
  for (const QueryPart& row : query_part_table()) names.emplace_back(row.name);
  if (std::find(names.begin(), names.end(), part) != names.end()) return;
  const std::string suggestion = nearest(part, names);
  if (!suggestion.empty())
    fail("model.query has no part {}; did you mean {}?", shown(part), suggestion);
  fail("model.query has no part {}; there are {}", shown(part), fmt::join(names, ", "));
}

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// Choices that attention() takes and a recurrent decoder does not.
void check_recurrent(const AttentionChoices& choices) {
  const std::vector<BiasChoice> biases = parse_biases(choices.bias);
  if (std::any_of(biases.begin(), biases.end(),
                  [](const BiasChoice& bias) { return bias.name == "grid"; }))
    fail(
        "model.bias is {}, and the positions of a source have one axis and no grid; take "
        "relative_keys:L or buckets:N",
        choices.bias);
  if (choices.normaliser == "monotonic_hard")
    fail(
        "model.normaliser is monotonic_hard, which has no gradient to train by; take monotonic, "
        "which becomes it after training");
  if (base_name(choices.normaliser) == "linear" || choices.score.ends_with("_features"))
    fail(
        "model.score is {} and model.normaliser {}: linear attention never forms the weights that "
        "answers are explained with; take scaled_dot and softmax",
        choices.score, choices.normaliser);
}

}  // namespace

const std::vector<QueryPart>& query_part_table() {
  static const std::vector<QueryPart> table = {
      {"previous_state", "the decoder's state before the step"},
      {"state", "its state after the step, which then precedes attention"},
      {"token", "the embedded symbol before"},
      {"context", "the context before; behind state it also enters the recurrence"},
      {"extra", "the embedded first symbol of the source, such as a target language"},
  };
  return table;
}

Settings Seq2SeqConfig::settings() {
  Settings all = MechanismSettings::settings("model.", "the decoder's attention", {"none"});
  const Settings own = {
      {"model.cell", &cell, "recurrent cell", {}, {}, {"gru", "lstm"}},
      {"model.query", &query, query_syntax()},
      {"model.embedding", &embedding, "depth of the symbol embeddings", 1, 65536},
      {"model.hidden", &hidden, "depth of decoder state and annotations; even", 2, 65536},
      {"model.attention_depth", &attention_depth, "hidden units of the additive score", 1, 65536},
      {"model.encoder_layers", &encoder_layers, "bidirectional layers of the encoder", 1, 64},
      {"model.dropout", &dropout, "share of activations dropped in training", 0, 0.95},
      {"model.entropy_weight", &entropy_weight,
       "reward for the entropy of hard attention, which keeps it from settling early", 0, 1000},
      {"model.maximum_source_length", &maximum_source_length,
       "symbols of a source that are read; the rest is cut", 1, 1 << 20},
  };
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<std::string> Seq2SeqConfig::query_parts() const {
  const std::string text = without_spaces(
      query.empty() ? std::string(attend::mechanism(mechanism).decoder_query) : query);
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    check_part(parts.back());
    if (std::count(parts.begin(), parts.end(), parts.back()) > 1)
      fail("model.query is {} and names {} twice; leave one out", shown(query), parts.back());
    begin = end + 1;
  }
  return parts;
}

AttentionSizes Seq2SeqConfig::attention_sizes() const {
  int64_t depth = 0;
  for (const std::string& part : query_parts())
    depth += part == "token" || part == "extra" ? embedding : hidden;
  return {.query_depth = depth,
          .key_depth = hidden,
          .attention_depth = attention_depth,
          .keys = maximum_source_length};
}

void Seq2SeqConfig::check() const {
  if (hidden % 2 != 0)
    fail("model.hidden must be even, got {}; half of it is each direction of the encoder", hidden);
  if (!attends()) return;
  const Mechanism& row = attend::mechanism(mechanism);
  if (!row.refusal.empty()) fail("model.mechanism is {}: {}", row.name, row.refusal);
  const AttentionChoices choices = this->choices();
  check_recurrent(choices);
  check_sizes(choices, attention_sizes());
  if (entropy_weight != 0 && base_name(choices.normaliser) != "hard")
    fail(
        "model.entropy_weight is {}, and normaliser {} draws nothing whose entropy could be "
        "rewarded; take 0, or normaliser hard",
        entropy_weight, choices.normaliser);
}

}  // namespace attend
