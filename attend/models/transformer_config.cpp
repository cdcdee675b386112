#include "attend/models/transformer_config.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "attend/base/error.h"
#include "attend/base/find_row.h"
#include "attend/base/trimmed_parts.h"
#include "attend/nn/mechanism_table.h"

namespace attend {
namespace {

constexpr int64_t max_layers = 256;

// Splits "a; b; c", the value of `key`.
std::vector<std::string> in_turn(const char* key, std::string_view text, char separator = ';') {
  if (std::count(text.begin(), text.end(), separator) >= max_layers)
    fail("{} has over {} parts, more than the maximum number of layers; write fewer", key,
         max_layers);
  return trimmed_parts(text, separator);
}

double rotary_base(const std::string& text) {
  double base = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), base);
  if (error != std::errc() || end != text.data() + text.size() || !(base > 1 && base <= 1e12))
    fail("model.rotary_bases has {}; write numbers above 1 and up to 1e12, such as 160000; 10000",
         in_quotes(text));
  return base;
}

// Null for attention.
const RecurrenceRow* recurrence_named(const std::string& name) {
  if (name == attention_layer) return nullptr;
  std::vector<std::string> names = {std::string(attention_layer)};
  names.reserve(1 + recurrence_table().size());
  for (const RecurrenceRow& row : recurrence_table()) {
    if (row.name == name) return &row;
    names.emplace_back(row.name);
  }
  fail_unknown("model.layer", name, names);
}

std::string layer_names() {
  std::string names(attention_layer);
  for (const RecurrenceRow& row : recurrence_table()) names += fmt::format(", {}", row.name);
  return names;
}

// "a | b" becomes "causal & a | causal & b", because & binds more tightly.
std::string causal_scope(const std::string& scope) {
  std::string result;
  for (size_t begin = 0; begin <= scope.size();) {
    const size_t end = std::min(scope.find('|', begin), scope.size());
    if (!result.empty()) result += " | ";
    result += "causal & " + scope.substr(begin, end - begin);
    begin = end + 1;
  }
  return result;
}

// Error for rows with a module that a Transformer does not contain.
void check_row(const char* key, const Mechanism& row) {
  switch (row.module_kind) {
    case ModuleKind::none:
    case ModuleKind::multi_head:
    case ModuleKind::rotation:
    case ModuleKind::partial_rotation:
    case ModuleKind::yarn_rotation:
    case ModuleKind::llama3_rotation:
    case ModuleKind::sinusoids:
    case ModuleKind::learned_positions:
    case ModuleKind::output_gate:
    case ModuleKind::difference:
    case ModuleKind::latent:
    case ModuleKind::branches:
    case ModuleKind::indexer:
    case ModuleKind::selection:
    case ModuleKind::memory:
    case ModuleKind::score_mix:
      return;
    default:
      fail("{} is {}, which takes {}; take self, or another row without a module", key, row.name,
           row.module);
  }
}

// Whether a module reads only earlier positions of its own sequence.
bool reads_earlier(ModuleKind kind) {
  return kind == ModuleKind::branches || kind == ModuleKind::selection ||
         kind == ModuleKind::memory || kind == ModuleKind::score_mix;
}

// Error if the row implies other positions than the setting.
void check_positions(const Mechanism& row, Positions positions) {
  if (row.module_kind == ModuleKind::sinusoids && positions != Positions::sinusoidal)
    fail("model.mechanism is {} and model.positions {}; take one of both", row.name,
         name_of(positions));
  if (row.module_kind == ModuleKind::learned_positions && positions != Positions::learned)
    fail("model.mechanism is {} and model.positions {}; take learned", row.name,
         name_of(positions));
}

// The heads of a row, with the form of its module.
HeadGroup group_of(const MechanismSettings& settings, int64_t heads, int64_t key_heads) {
  HeadGroup group{settings.choices(), heads, key_heads};
  const ModuleKind kind = mechanism(settings.mechanism).module_kind;
  group.rotary = kind == ModuleKind::rotation;
  group.gated = kind == ModuleKind::output_gate;
  group.differential = kind == ModuleKind::difference;
  group.selective = kind == ModuleKind::selection;
  return group;
}

}  // namespace

Settings LayersConfig::norm_settings() {
  return {
      {"model.normalise_first", &normalise_first,
       "whether layers normalise their input (true) or their output (false)"},
      {"model.first_norm", &first_norm,
       "whether the first layer's attention normalises its input, as the other layers do"},
      {"model.sublayer_input", &residual,
       "input of a sublayer: the sum of all earlier outputs, or their mean with weights from "
       "learned "
       "queries (attention residuals; Kimi Team 2026)"},
      {"model.sublayer_block", &residual_block,
       "number of sublayers that are summed before model.sublayer_input = attention reads them", 1,
       1024},
      {"model.norm", &norm,
       "norm of the layers: layer normalisation, or division by the root mean square (rms)"},
      {"model.epsilon", &epsilon, "number added to the variance in layer normalisation", 1e-15, 1},
      {"model.fixed_biases", &fixed_biases,
       "whether training leaves the biases of the layers unchanged, for classes of transformers "
       "without biases"},
      {"model.shared_bias", &shared_bias,
       "whether all layers of a stack share the parameters of model.bias"},
      {"model.distances", &distances,
       "vectors of distances that model.bias compares with queries or keys: each layer's own, "
       "shared ones that the maps of keys and queries of each layer map, or shared ones that "
       "additional maps map (mapped)"},
      {"model.normalise_distances", &normalise_distances,
       "whether shared vectors of distances are normalised"}};
}

Settings LayersConfig::mechanism_settings() {
  return {
      {"model.latent_depth", &latent_depth,
       "numbers that decoding keeps per token for keys and values of all heads, with mechanism "
       "latent; 0: 4 times the depth of a head",
       0, 65536},
      {"model.latent_rotary", &latent_rotary,
       "depth of the rotated key that all heads share, with mechanism latent; -1: half of a "
       "head's depth",
       -1, 65536},
      {"model.sparse_block", &sparse_block, "number of keys per block of mechanism nsa", 1, 65536},
      {"model.sparse_blocks", &sparse_blocks,
       "number of blocks that each position selects with mechanism nsa", 1, 65536},
      {"model.sparse_window", &sparse_window,
       "number of last keys that each position reads with mechanism nsa", 1, 1 << 20},
      {"model.index_keys", &index_keys,
       "number of keys that each position reads with mechanism dsa", 1, 1 << 20},
      {"model.index_heads", &index_heads, "number of heads of the indexer of mechanism dsa", 1,
       1024},
      {"model.index_depth", &index_depth,
       "depth of queries and keys of the indexer of mechanism dsa", 1, 65536},
      {"model.memory_segment", &memory_segment, "number of keys per segment of mechanism infini", 1,
       1 << 20},
      {"model.mixed_queries", &mixed_queries,
       "number of last queries in the kernel of mechanism multi_token", 1, 64},
      {"model.mixed_keys", &mixed_keys,
       "number of keys in the kernel of mechanism multi_token; odd", 1, 255},
      {"model.mixed_heads", &mixed_heads,
       "number of heads that mechanism multi_token mixes; divides model.heads", 1, 1024}};
}

Settings LayersConfig::weight_settings() {
  Settings all = {
      {"model.positions", &positions, "encoding of positions"},
      {"model.depth", &depth, "depth of the vectors between the layers", 1, 65536},
      {"model.feed_forward", &feed_forward, "number of hidden units of the feed-forward network", 1,
       262144},
      {"model.layer", &layer,
       fmt::format("how layers read the sequence: {}; several, separated by commas, alternate over "
                   "the layers; in encoders half of the heads of a recurrence read from the end",
                   layer_names())},
      {"model.heads", &heads, "number of attention heads; divides model.depth", 1, 1024},
      {"model.head_depth", &head_depth,
       "depth of queries, keys and values of a head; 0: model.depth / model.heads", 0, 65536},
      {"model.key_heads", &key_heads,
       "number of heads of keys and values, shared by the attention heads; 0: one per head", 0,
       1024},
      {"model.rotary_bases", &rotary_bases,
       "base of the angles of positions rotary; several, separated by ;, alternate over the "
       "layers"},
      {"model.rotary_scaling", &rotary_scaling,
       "frequencies of positions rotary: none, float16 (rounded to it), or for longer sequences "
       "than in training linear:FACTOR, yarn:FACTOR,LENGTH[,FAST,SLOW] or "
       "llama3:FACTOR,LENGTH[,LOW,HIGH], with the LENGTH in training; several, separated by ;, "
       "alternate over the layers"},
      {"model.rotary_share", &rotary_share,
       "share of the columns of each head that positions rotary rotates, the first ones", 1e-3, 1},
      {"model.rotary_pairs", &rotary_pairs,
       "columns that positions rotary rotates together: adjacent ones, or one of each half"},
      {"model.activation", &activation, "activation of the hidden units"},
      {"model.gated", &gated, "whether a gate multiplies the hidden units (Shazeer 2020)"},
      {"model.experts", &experts,
       "number of feed-forward networks (experts) per layer; a position uses model.chosen_experts; "
       "0: one network",
       0, 1024},
      {"model.chosen_experts", &chosen_experts, "number of experts that a position uses", 1, 1024}};
  append(all, mechanism_settings());
  append(all, norm_settings());
  return all;
}

Settings LayersConfig::settings() {
  Settings all = self.settings("model.", "self-attention");
  append(all, weight_settings());
  append(all,
         {{"model.scopes", &scopes,
           "scopes that alternate over the layers, such as all; window:64; empty: model.scope"},
          {"model.dropout", &dropout, "dropout probability of activations", 0, 0.95},
          {"model.attention_dropout", &attention_dropout,
           "dropout probability of attention weights", 0, 0.95}});
  return all;
}

std::vector<HeadGroup> LayersConfig::heads_in_turn(bool causal) const {
  HeadGroup group = group_of(self, heads, key_heads);
  const ModuleKind kind = mechanism(self.mechanism).module_kind;
  if (kind == ModuleKind::indexer) group.indexer = {index_keys, index_heads, index_depth};
  if (kind == ModuleKind::memory) group.memory_segment = memory_segment;
  if (kind == ModuleKind::score_mix) group.mix = {mixed_queries, mixed_keys, mixed_heads};
  if (has_branches()) group.branches = {sparse_block, sparse_blocks, sparse_window};
  if (is_latent()) {
    const int64_t own_depth = depth_per_head();
    // The default sizes of DeepSeek-AI 2024, 3.1.2.
    group.latent_depth = latent_depth > 0 ? latent_depth : 4 * own_depth;
    group.rotary_depth = latent_rotary >= 0 ? latent_rotary : (own_depth + 3) / 4 * 2;
  } else {
    group.rotary = rotates();
  }
  const std::vector<std::string> all_scopes =
      in_turn("model.scopes", scopes.empty() ? group.choices.scope : scopes);
  const std::vector<std::string> all_bases = in_turn("model.rotary_bases", rotary_bases);
  const std::vector<RotaryScaling> all_scalings = scalings();
  std::vector<HeadGroup> turns(
      std::lcm(std::lcm(all_scopes.size(), all_bases.size()), all_scalings.size()), group);
  for (size_t i = 0; i < turns.size(); ++i) {
    const std::string& scope = all_scopes[i % all_scopes.size()];
    turns[i].choices.scope = causal ? causal_scope(scope) : scope;
    turns[i].rotation = {.base = rotary_base(all_bases[i % all_bases.size()]),
                         .share = rotary_share,
                         .pairs = rotary_pairs,
                         .scaling = all_scalings[i % all_scalings.size()]};
  }
  return turns;
}

std::vector<RotaryScaling> LayersConfig::scalings() const {
  std::vector<RotaryScaling> all;
  for (const std::string& text : in_turn("model.rotary_scaling", rotary_scaling))
    all.push_back(parse_rotary_scaling(text));
  return all;
}

void LayersConfig::check_rotation() const {
  const std::vector<RotaryScaling> all = scalings();
  const Mechanism& row = mechanism(self.mechanism);
  const bool scaled = std::any_of(all.begin(), all.end(), [](const RotaryScaling& one) {
    return one.rule != RotaryRule::none;
  });
  if (row.rotary_rule != RotaryRule::none &&
      std::none_of(all.begin(), all.end(),
                   [&](const RotaryScaling& one) { return one.rule == row.rotary_rule; }))
    fail(
        "model.mechanism is {}, and model.rotary_scaling {}; give its numbers, such as "
        "model.rotary_scaling={}:4,2048",
        row.name, in_quotes(rotary_scaling), row.name);
  if (!rotates()) {
    if (scaled || rotary_share != 1)
      fail(
          "model.rotary_scaling is {} and model.rotary_share {}, and model.positions {} rotates "
          "nothing; take rotary",
          in_quotes(rotary_scaling), rotary_share, name_of(positions));
    return;
  }
  for (const RotaryScaling& one : all) {
    if (one.rule == RotaryRule::dynamic)
      fail(
          "model.rotary_scaling is {}: dynamic changes the angles of earlier tokens with each "
          "token, so that answers would differ from training; take yarn:FACTOR,LENGTH",
          rotary_scaling);
    rotary_frequencies({.share = rotary_share, .scaling = one}, depth_per_head());
  }
}

bool LayersConfig::rotates() const {
  return positions == Positions::rotary || mechanism(self.mechanism).rotates;
}

std::vector<const RecurrenceRow*> LayersConfig::recurrences() const {
  const std::vector<std::string> names = in_turn("model.layer", layer, ',');
  std::vector<const RecurrenceRow*> rows(names.size());
  std::transform(names.begin(), names.end(), rows.begin(), recurrence_named);
  const bool attend = std::count(rows.begin(), rows.end(), nullptr) == std::ssize(rows);
  return attend ? std::vector<const RecurrenceRow*>{} : rows;
}

bool LayersConfig::attends(int64_t index) const {
  const std::vector<const RecurrenceRow*> rows = recurrences();
  return rows.empty() || rows[static_cast<size_t>(index) % rows.size()] == nullptr;
}

std::string LayersConfig::unused_mechanism_reason() const {
  const std::vector<const RecurrenceRow*> rows = recurrences();
  const bool none = !rows.empty() && std::count(rows.begin(), rows.end(), nullptr) == 0;
  return none ? "model.layer = " + layer : "";
}

TransformerStackConfig LayersConfig::stack(int64_t layers, bool causal,
                                           const MechanismSettings* source) const {
  if (reads_earlier(mechanism(self.mechanism).module_kind) && !causal)
    fail("model.mechanism is {}, which reads only earlier positions; take self, or model.type = lm",
         self.mechanism);
  const std::vector<HeadGroup> turns = heads_in_turn(causal);
  TransformerStackConfig config{.layers = layers, .depth = depth, .self = {turns[0]}};
  if (turns.size() > 1)
    for (const HeadGroup& group : turns) config.self_in_turn.push_back({group});
  config.recurrences = recurrences();
  config.both_ways = !causal;
  if (source != nullptr) {
    config.cross = {group_of(*source, heads, key_heads)};
    config.cross[0].rotary = false;  // positions of two sequences
  }
  config.feed_forward = feed_forward;
  config.activation = activation;
  config.gated = gated;
  config.experts = experts;
  config.chosen_experts = chosen_experts;
  config.normalise_first = normalise_first;
  config.first_norm = first_norm;
  config.depth_block = residual == Residual::attention ? residual_block : 0;
  config.head_depth = head_depth;
  config.shared_bias = shared_bias;
  config.distances = distances;
  config.normalise_distances = normalise_distances;
  config.norm = norm;
  config.epsilon = epsilon;
  config.fixed_biases = fixed_biases;
  config.dropout = dropout;
  config.attention_dropout = attention_dropout;
  return config;
}

std::string LayersConfig::not_shared_reason() const {
  if (experts > 0)
    return fmt::format("model.experts is {}, and its gates draw random numbers for whole sequences",
                       experts);
  const ModuleKind kind = mechanism(self.mechanism).module_kind;
  if (reads_earlier(kind) || kind == ModuleKind::indexer)
    return fmt::format("model.mechanism is {}, which combines the keys of all processes",
                       self.mechanism);
  for (const HeadGroup& group : heads_in_turn(/*causal=*/false))
    if (const std::string& scope = group.choices.scope;
        !around_reach(scope) && depends_on_data(parse_scope(scope)))
      return fmt::format("a layer's scope is {}, which chooses among the keys of all processes",
                         scope);
  return self.not_shared_reason("model.");
}

void LayersConfig::check() const {
  if (experts > 0 && chosen_experts > experts)
    fail("model.chosen_experts is {}, model.experts {}; take at most that many", chosen_experts,
         experts);
  check_heads();
  if (gated && experts > 0)
    fail("model.gated is true, and model.experts {}, which do not support gates; take false or 0",
         experts);
  if (!first_norm && !normalise_first)
    fail(
        "model.first_norm is false, and so is model.normalise_first, so no layer normalises its "
        "input; take true");
  check_residual();
  check_latent();
  const Mechanism& row = mechanism(self.mechanism);
  if (row.module_kind == ModuleKind::difference && (heads % 2 != 0 || key_heads % 2 != 0))
    fail("model.heads is {} and model.key_heads {}, and {} subtracts in pairs; take even numbers",
         heads, key_heads, row.name);
  if (row.module_kind == ModuleKind::score_mix && (heads % mixed_heads != 0 || mixed_keys % 2 == 0))
    fail(
        "model.mixed_heads is {} and model.mixed_keys {}; take a number that divides model.heads, "
        "{}, and an odd one",
        mixed_heads, mixed_keys, heads);
  recurrences();  // throws on an unknown name
  check_row("model.mechanism", row);
  self.check("model.");
  if (shared_bias && self.choices().bias.empty())
    fail("model.shared_bias is true, and the layers have no bias; set model.bias, or take false");
  check_distances();
  check_turns();
  check_rotation();
  check_positions(row, positions);
  if (positions == Positions::sinusoidal_fairseq && (depth < 4 || depth % 2 != 0))
    fail("model.positions is {}, which needs an even model.depth from 4; model.depth is {}",
         name_of(positions), depth);
}

void LayersConfig::check_distances() const {
  if (distances == DistanceSource::own) {
    if (normalise_distances)
      fail("model.normalise_distances is true, and model.distances is own; take false, or shared");
    return;
  }
  const std::vector<BiasChoice> biases = parse_biases(self.choices().bias);
  if (std::none_of(biases.begin(), biases.end(),
                   [](const BiasChoice& bias) { return bias.row->compares(); }))
    fail(
        "model.distances is {}, and model.bias has no vectors of distances; take own, or a bias "
        "such as content_to_position:64",
        name_of(distances));
  if (key_heads > 0 && key_heads != heads)
    fail("model.distances is {}, and model.key_heads {}; take own, or 0", name_of(distances),
         key_heads);
  if (is_latent() || shared_bias)
    fail(
        "model.distances is {}, which neither mechanism latent nor model.shared_bias supports; "
        "take own",
        name_of(distances));
}

void LayersConfig::check_heads() const {
  if (head_depth == 0 && depth % heads != 0)
    fail(
        "model.heads is {}, which does not divide model.depth, {}; take one that does, or set "
        "model.head_depth",
        heads, depth);
  if (head_depth > 0 && !attends_everywhere())
    fail("model.head_depth is {}, and the heads of model.layer = {} divide model.depth; take 0",
         head_depth, layer);
  if (key_heads > 0 && heads % key_heads != 0)
    fail("model.key_heads is {}, which does not divide model.heads, {}; take one that does",
         key_heads, heads);
}

void LayersConfig::check_residual() const {
  if (residual == Residual::attention && !normalise_first)
    fail(
        "model.sublayer_input is attention, which reads outputs before any norm, and "
        "model.normalise_first false; take true");
  if (residual == Residual::sum && residual_block != 1)
    fail("model.sublayer_block is {}, and model.sublayer_input sum; take attention, or 1",
         residual_block);
}

bool LayersConfig::has_branches() const {
  return mechanism(self.mechanism).module_kind == ModuleKind::branches;
}

bool LayersConfig::is_latent() const {
  return mechanism(self.mechanism).module_kind == ModuleKind::latent;
}

void LayersConfig::check_latent() const {
  if (!is_latent() && (latent_depth != 0 || latent_rotary != -1))
    fail(
        "model.latent_depth is {} and model.latent_rotary {}, which only mechanism latent reads; "
        "take 0 and -1, or model.mechanism = latent",
        latent_depth, latent_rotary);
  if (latent_rotary > 0 && latent_rotary % 2 != 0)
    fail("model.latent_rotary is {}, and rotation turns pairs of numbers; take an even number",
         latent_rotary);
  if (is_latent() && key_heads != 0)
    fail("model.key_heads is {}, and latent heads share one vector per token; take 0", key_heads);
}

void LayersConfig::check_both_ways() const {
  if (!attends_everywhere() && heads % 2 != 0)
    fail(
        "model.heads is {}, and with model.layer = {} half of the heads read from the end; take an "
        "even number",
        heads, layer);
}

void LayersConfig::check_turns() const {
  if (!scopes.empty() && !self.scope.empty())
    fail("model.scope is {} and model.scopes {}; write one of both", self.scope, scopes);
  if (around_reach(scopes))
    fail("model.scopes is {}, and around:D is the scope of all layers; write it as model.scope",
         scopes);
  for (const HeadGroup& group : heads_in_turn(/*causal=*/false)) check_choices(group.choices);
}

std::string TransformerConfig::not_shared_reason() const {
  const std::string why = LayersConfig::not_shared_reason();
  return why.empty() ? source.not_shared_reason("model.source_") : why;
}

Settings TransformerConfig::length_settings() {
  return {{"model.maximum_source_length", &maximum_source_length,
           "maximum number of tokens of a source; the rest is cut", 1, 1 << 20},
          {"model.maximum_target_length", &maximum_target_length,
           "maximum number of tokens of an answer, with model.positions = learned; 0: 3 times "
           "model.maximum_source_length plus 10",
           0, 1 << 20}};
}

EmbeddingForm TransformerConfig::embedding(int64_t learned) const {
  EmbeddingForm form{.positions = positions, .maximum = learned, .scaled = scale_embedding};
  if (normalise_input) form.norm_epsilon = epsilon;
  form.equal = equal_tokens();
  return form;
}

Settings TransformerConfig::input_settings() {
  Settings all = token_settings();
  append(
      all,
      {{"model.scale_output", &scale_output,
        "whether the decoder's vectors are divided by the square root of model.depth before the "
        "output"},
       {"model.normalise_input", &normalise_input,
        "whether the sum of token and position vectors is normalised, before the layers"},
       {"model.separate_positions", &separate_positions,
        "whether source and target have learned positions and an input norm of their own although "
        "model.tied shares the token vectors"}});
  return all;
}

Settings TransformerConfig::weight_settings() {
  Settings all = LayersConfig::weight_settings();
  append(all, input_settings());
  if (positions == Positions::learned) append(all, length_settings());
  return all;
}

Settings TransformerConfig::settings() {
  Settings all = LayersConfig::settings();
  append(all, source.settings("model.source_", "attention of the decoder to the source"));
  append(all, image.settings());
  append(all, {{"model.encoder_layers", &encoder_layers, "number of layers of the encoder", 1, 256},
               {"model.decoder_layers", &decoder_layers, "number of layers of the decoder", 1, 256},
               {"model.tied", &tied,
                "embeddings that the output shares, or inputs: source and target share theirs; all "
                "and inputs need data.joint_vocabulary"}});
  append(all, length_settings());
  append(all, input_settings());
  return all;
}

void TransformerConfig::check() const {
  LayersConfig::check();
  if (scale_output && !normalise_first)
    fail("model.scale_output is true, and model.normalise_first false; take true, or false");
  if (!shared().empty() && !shares_inputs(tied))
    fail("model.shared_tokens is {}, and model.tied {}; leave it empty, or take all, or inputs",
         in_quotes(shared_tokens), name_of(tied));
  if (separate_positions && !shares_inputs(tied))
    fail("model.separate_positions is true, and model.tied {}; take false, or all, or inputs",
         name_of(tied));
  check_both_ways();
  const Mechanism& row = mechanism(source.mechanism);
  check_row("model.source_mechanism", row);
  const ModuleKind kind = row.module_kind;
  if (kind == ModuleKind::latent || kind == ModuleKind::indexer || reads_earlier(kind))
    fail("model.source_mechanism is {}, which reads its own sequence; take cross", row.name);
  if (source.bias == MechanismSettings::automatic_bias)
    fail("model.source_bias is auto, which is for distances in one sequence; leave it out");
  source.check("model.source_");
}

}  // namespace attend
