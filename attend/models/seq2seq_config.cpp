#include "attend/models/seq2seq_config.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/nn/mechanism_table.h"

namespace attend {
namespace {

std::string query_syntax() {
  std::string help = "parts of the query, joined by +: ";
  const EnumNames names = names_of(QueryVector{});
  for (size_t i = 0; i < names.size(); ++i)
    help += fmt::format("{} ({}), ", names[i], query_part_table()[i].meaning);
  return help + "empty: the mechanism's own";
}

QueryVector part_of_query(const std::string& part) {
  const EnumNames names = names_of(QueryVector{});
  const auto found = std::find(names.begin(), names.end(), part);
  if (found != names.end()) return static_cast<QueryVector>(found - names.begin());
  const std::string suggestion = nearest(part, names);
  if (!suggestion.empty())
    fail("model.query has no part {}; did you mean {}?", in_quotes(part), suggestion);
  fail("model.query has no part {}; there are {}", in_quotes(part), fmt::join(names, ", "));
}

Settings readout_settings(Seq2SeqConfig& config) {
  return {
      {"model.input_feeding", &config.input_feeding,
       "whether the previous context enters a recurrence that precedes attention (Luong et al. "
       "2015)"},
      {"model.intra_decoder", &config.intra_decoder,
       "whether the readout also reads the decoder's earlier states (Paulus et al. 2017)"},
      {"model.plain", &config.plain,
       "whether the decoder begins with the last state of a forward encoder, and tokens are read "
       "off its state (Sutskever et al. 2014); needs model.score = none"},
      {"model.tied", &config.tied,
       "embeddings that the output shares, or inputs: source and target share theirs; all and "
       "inputs need data.joint_vocabulary"},
      {"model.copy", &config.copy,
       "whether tokens of the source may be copied (See et al. 2017); needs data.joint_vocabulary"},
      {"model.coverage_weight", &config.coverage_weight,
       "weight of the coverage loss in training (See et al. 2017, eq. 12)", 0, 1000},
  };
}

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// Error for choices that attention() supports but a recurrent decoder does not.
void check_recurrent(const AttentionChoices& choices) {
  if (has_bias(parse_biases(choices.bias), BiasKind::grid))
    fail(
        "model.bias is {}, and the positions of a source have one axis and no grid; take "
        "relative_keys:L or buckets:N",
        choices.bias);
  for (const BiasChoice& bias : parse_biases(choices.bias))
    if (bias.row->is_of_source)
      fail(
          "model.bias is {}, and its gates are read from a sequence that attends to itself; take "
          "alibi",
          bias.row->name);
  const NormaliserRow& normaliser = Normaliser(choices.normaliser).row();
  if (normaliser.training == Training::none)
    fail(
        "model.normaliser is {}, which has no gradient to train by; take monotonic, which becomes "
        "it after training",
        choices.normaliser);
  if (normaliser.running_sums || score_row(choices.score).features != Features::any)
    fail(
        "model.score is {} and model.normaliser {}: linear attention never forms the weights that "
        "answers are explained with; take scaled_dot and softmax",
        choices.score, choices.normaliser);
}

// A token is copied with its attention weight, so weights must sum to 1 for every query.
void check_copying(const AttentionChoices& choices) {
  const bool sees_all = !around_reach(choices.scope) && parse_scope(choices.scope).any_of.empty();
  const bool sums_to_one = Normaliser(choices.normaliser).row().sums_to_one && sees_all &&
                           !has_bias(parse_biases(choices.bias), BiasKind::sink);
  if (!sums_to_one)
    fail(
        "model.copy is true, and scope {}, bias {} and normaliser {} may give weights that do not "
        "sum to 1; take scope all, no sink, and softmax or sparsemax",
        choices.scope, in_quotes(choices.bias), choices.normaliser);
}

// A plain decoder only receives the state of one cell from the source.
void check_plain(const Seq2SeqConfig& config) {
  const char* other = config.attends()                           ? "model.score = none"
                      : config.encoder != Annotations::recurrent ? "model.encoder = recurrent"
                      : config.cell != Cell::gru                 ? "model.cell = gru"
                      : config.encoder_layers > 1                ? "model.encoder_layers = 1"
                      : config.decoder_layers > 1                ? "model.decoder_layers = 1"
                      : config.self_layers > 0                   ? "model.self_layers = 0"
                      : config.intra_decoder                     ? "model.intra_decoder = false"
                      : config.tied != Tied::none                ? "model.tied = none"
                                                                 : nullptr;
  if (other != nullptr)
    fail("model.plain is true, so the decoder reads only one state; set {}", other);
}

void check_needs_attention(const Seq2SeqConfig& config) {
  const char* key = config.copy                  ? "model.copy"
                    : config.input_feeding       ? "model.input_feeding"
                    : config.coverage_weight > 0 ? "model.coverage_weight"
                                                 : nullptr;
  if (key != nullptr) fail("model.score is none, and {} needs attention; leave it out", key);
}

}  // namespace

const std::vector<QueryPart>& query_part_table() {
  static const std::vector<QueryPart> table = {
      {"the decoder's state before the step", StepVector::state},
      {"the decoder's state after the step, which then precedes attention", StepVector::state},
      {"the previous embedded token", StepVector::token},
      {"the previous context; after state it also enters the recurrence", StepVector::context},
      {"the embedded first token of the source, such as a target language", StepVector::extra},
  };
  return table;
}

Settings Seq2SeqConfig::weight_settings() {
  return {{"model.cell", &cell, "recurrent cell"},
          {"model.embedding", &embedding, "depth of the token embeddings", 1, 65536},
          {"model.hidden", &hidden, "depth of decoder state and annotations; even", 2, 65536}};
}

Settings Seq2SeqConfig::settings() {
  Settings all =
      MechanismSettings::settings("model.", "the decoder's attention", {std::string(no_attention)});
  append(all, weight_settings());
  Settings own = {
      {"model.encoder", &encoder,
       "annotations of the source: recurrent layers; none: only embeddings with positions"},
      {"model.query", &query, query_syntax()},
      {"model.attention_depth", &attention_depth, "number of hidden units of the additive score", 1,
       65536},
      {"model.encoder_layers", &encoder_layers, "number of bidirectional layers of the encoder", 1,
       64},
      {"model.decoder_layers", &decoder_layers, "number of recurrent layers of the decoder", 1, 64},
      {"model.residual", &residual,
       "whether recurrent layers above the first have residual connections"},
      {"model.self_layers", &self_layers, "number of Transformer layers on top of the annotations",
       0, 256},
      {"model.heads", &heads, "number of heads of model.self_layers; divides model.hidden", 1,
       1024},
      {"model.dropout", &dropout, "dropout probability of activations; -1: by the size of the data",
       -1, 0.95},
      {"model.entropy_weight", &entropy_weight,
       "weight of the entropy of hard attention in its reward, which delays convergence", 0, 1000},
      {"model.maximum_source_length", &maximum_source_length,
       "maximum number of tokens of a source; the rest is cut", 1, 1 << 20},
  };
  append(own, image.settings());
  append(own, readout_settings(*this));
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<QueryVector> Seq2SeqConfig::query_parts() const {
  const std::string text = without_spaces(
      query.empty() ? std::string(attend::mechanism(mechanism).decoder_query) : query);
  std::vector<QueryVector> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    parts.push_back(part_of_query(text.substr(begin, end - begin)));
    if (std::count(parts.begin(), parts.end(), parts.back()) > 1)
      fail("model.query is {} and names {} twice; leave one out", in_quotes(query),
           name_of(parts.back()));
    begin = end + 1;
  }
  return parts;
}

TransformerStackConfig Seq2SeqConfig::self_stack() const {
  return {.layers = self_layers,
          .depth = hidden,
          .self = {{attend::mechanism("self").choices, heads}},
          .feed_forward = 2 * hidden,
          .dropout = dropout};
}

AttentionSizes Seq2SeqConfig::attention_sizes() const {
  int64_t depth = 0;
  for (const QueryVector part : query_parts())
    depth += part == QueryVector::token   ? embedding
             : part == QueryVector::extra ? source_depth()
                                          : hidden;
  return {.query_depth = depth,
          .key_depth = hidden,
          .attention_depth = attention_depth,
          .keys = maximum_source_length};
}

void Seq2SeqConfig::check() const {
  if (plain) check_plain(*this);
  if (!plain && hidden % 2 != 0)
    fail("model.hidden must be even, got {}; half of it is each direction of the encoder", hidden);
  if (self_layers > 0 && hidden % heads != 0)
    fail("model.heads is {}, which does not divide model.hidden, {}; take one that does", heads,
         hidden);
  if (shares_inputs(tied) && source_depth() != embedding)
    fail(
        "model.tied is {}, and without a recurrent encoder a source is embedded with {} numbers, "
        "not {}; set model.embedding = model.hidden",
        name_of(tied), source_depth(), embedding);
  if (!attends()) {
    check_needs_attention(*this);
    return;
  }
  const Mechanism& row = attend::mechanism(mechanism);
  if (!row.refusal.empty()) fail("model.mechanism is {}: {}", row.name, row.refusal);
  if (bias == automatic_bias)
    fail("model.bias is auto, which is for distances in one sequence; leave it out");
  const AttentionChoices choices = this->choices();
  check_recurrent(choices);
  check_sizes(choices, attention_sizes());
  if (copy) check_copying(choices);
  if (const auto parts = query_parts();
      input_feeding && std::find(parts.begin(), parts.end(), QueryVector::state) == parts.end())
    fail(
        "model.input_feeding is true, and the query lacks the state after the step, so the context "
        "enters the recurrence anyway; leave it out, or take model.query = state");
  if (entropy_weight != 0 && Normaliser(choices.normaliser).row().training != Training::reward)
    fail(
        "model.entropy_weight is {}, and normaliser {} does not sample, so its entropy has no "
        "reward; take 0, or normaliser hard",
        entropy_weight, choices.normaliser);
}

}  // namespace attend
