#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/suffix.h"
#include "attend/files/hdf5.h"
#include "attend/files/npz.h"
#include "attend/files/pickle.h"
#include "attend/files/zip_entries.h"
#include "attend/import/conversion-inl.h"
#include "attend/import/foreign_file-inl.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/import/keras-inl.h"
#include "attend/models/model_size.h"
#include "attend/models/seq2seq_config.h"

namespace attend::internal {
namespace {

using at::Tensor;

constexpr int64_t maximum_pickle_bytes = int64_t{64} << 20;
constexpr int64_t fixed_token_count = Vocabulary::unknown + 1;
constexpr int64_t padding_token = 0;  // Keras reserves it

// A Keras tokenizer for characters: spellings by id, empty for padding.
struct KerasSide {
  std::vector<std::string> tokens = {};
  std::string unknown = {};  // spelling of other characters' token; empty: they are left out
  bool lowercase = false;
  int64_t maximum_length = 0;  // padded sequences have it

  std::optional<int64_t> id_of(const std::string& token) const {
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    if (found == tokens.end()) return std::nullopt;
    return found - tokens.begin();
  }
};

KerasSide read_side(const JsonPosition& tokenizer, int64_t maximum_length) {
  if (!tokenizer.flag("char_level", false))
    tokenizer.member("char_level").refuse("is false; tokenizers for characters are read");
  KerasSide side{.lowercase = tokenizer.flag("lower", true), .maximum_length = maximum_length};
  if (tokenizer.has("oov_token")) side.unknown = tokenizer.member("oov_token").text();
  const JsonPosition index = tokenizer.member("word_index");
  if (!index.value().is_object()) index.refuse("is not a dictionary");
  side.tokens.resize(index.value().size() + 1);
  for (const auto& [token, place] : index.value().items()) {
    const int64_t id = index.number(token.c_str(), 0);
    if (id < 1 || id >= std::ssize(side.tokens) || token.empty() ||
        !side.tokens[static_cast<size_t>(id)].empty())
      index.refuse("has the token {} with id {}; ids are 1 to {}, each once", in_quotes(token), id,
                   side.tokens.size() - 1);
    side.tokens[static_cast<size_t>(id)] = token;
  }
  return side;
}

// The only file with tokenizers next to the model.
std::string tokenizers_beside(const std::string& path) {
  std::string found;
  const auto folder = std::filesystem::path(path).parent_path();
  for (const std::string& name : names_in(folder.empty() ? "." : folder.string())) {
    if (!has_suffix(name, ".pkl")) continue;
    if (!found.empty())
      fail("{}: {} and {} are next to it; leave the one with its tokenizers", path, found, name);
    found = name;
  }
  if (found.empty()) fail("{}: no .pkl file with its tokenizers is next to it; put it there", path);
  return (folder / found).string();
}

// Source and target. Only answers have a begin and an end.
std::pair<KerasSide, KerasSide> read_sides(const std::string& path) {
  constexpr std::string_view ending = "_tokenizer";
  const Json json = parse_pickle(read_file(path, maximum_pickle_bytes), path);
  const JsonPosition file(json, path);
  if (!json.is_object()) file.refuse("is not a dictionary of tokenizers");
  std::vector<KerasSide> sides;
  for (const auto& [key, value] : json.items()) {
    if (!key.ends_with(ending)) continue;
    const std::string side = key.substr(0, key.size() - ending.size());
    sides.push_back(read_side(file.member(key.c_str()),
                              file.member(("max_" + side + "_len").c_str()).number()));
  }
  const auto answers = [](const KerasSide& side) { return side.id_of("\t") && side.id_of("\n"); };
  if (sides.size() != 2 || answers(sides[0]) == answers(sides[1]))
    file.refuse(
        "has {} tokenizers; two are read, and only the target's has a tab and a line break, which "
        "begin and end answers",
        sides.size());
  if (answers(sides[0])) std::swap(sides[0], sides[1]);
  return {std::move(sides[0]), std::move(sides[1])};
}

// Splits texts into characters. Characters without a token are left out, also if the tokenizer of
// Keras has a token for them, because the package cleans its texts.
TextTokenizer character_tokenizer(const KerasSide& side) {
  Json vocabulary = {{fill_token, padding_token}};
  for (size_t id = 1; id < side.tokens.size(); ++id) vocabulary[side.tokens[id]] = id;
  const Json text = Json::array({{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}});
  const Json other = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  Json json = {{"version", "1.0"},
               {"truncation",
                {{"direction", "Left"},
                 {"max_length", side.maximum_length},
                 {"strategy", "LongestFirst"},
                 {"stride", 0}}},
               {"added_tokens", Json::array()},
               {"normalizer", nullptr},
               {"pre_tokenizer", nullptr},
               {"post_processor",
                {{"type", "TemplateProcessing"},
                 {"single", text},
                 {"pair", Json::array({text[0], other})},
                 {"special_tokens", Json::object()}}},
               {"decoder", nullptr},
               {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  if (side.lowercase) json["normalizer"] = {{"type", "Lowercase"}};
  return TextTokenizer::parse(json.dump(), "tokenizer.json");
}

// Tokens that no text has are named by their ids.
std::vector<std::string> target_names(const KerasSide& side) {
  std::vector<std::string> names;
  for (size_t id = 0; id < side.tokens.size(); ++id) {
    const std::string& token = side.tokens[id];
    const bool is_text = id > 0 && token != "\t" && token != "\n" && token != side.unknown;
    names.push_back(is_text ? token : name_by_id(static_cast<int32_t>(id)));
  }
  return names;
}

// The weights of Keras. Their units become the first units of wider layers here. All other weights
// are 0, so the other units stay 0.
class Weights {
 public:
  Weights(const Hdf5File& file, KerasLayers layers) : file_(file), layers_(std::move(layers)) {}

  const KerasLayers& layers() const { return layers_; }

  // Returns variable `number` of a layer. Error unless it has this many axes and is float32.
  Tensor variable(const std::string& layer, int64_t number, int64_t axes) const {
    const std::string name = fmt::format("{}/vars/{}", layer, number);
    Tensor tensor = file_.tensor(name);
    if (tensor.dim() != axes || tensor.scalar_type() != at::kFloat || tensor.numel() == 0)
      fail("model.weights.h5: {} has the type {} and shape [{}]; float32 with {} axes is read",
           in_quotes(name), c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "),
           axes);
    return tensor;
  }
  int64_t units(const std::string& gru) const { return variable(gru, 1, 2).size(0); }

 private:
  const Hdf5File& file_;
  KerasLayers layers_;
};

// `order` has a number for each of the equal parts along the first axis. Copies part i of theirs to
// the beginning of part order[i] of ours, from a column on. Error if it does not fit.
void place(const Tensor& ours, const Tensor& theirs, const std::vector<int64_t>& order = {0},
           int64_t column = 0) {
  const auto parts = static_cast<int64_t>(order.size());
  const int64_t rows = ours.size(0) / parts, own = theirs.size(0) / parts;
  if (own * parts != theirs.size(0) || own > rows || ours.dim() != theirs.dim() ||
      (theirs.dim() == 2 && theirs.size(1) > ours.size(1) - column))
    fail("model.weights.h5: a weight has the shape [{}], which its model cannot have",
         fmt::join(theirs.sizes(), ", "));
  for (int64_t part = 0; part < parts; ++part) {
    Tensor to = ours.narrow(0, order[static_cast<size_t>(part)] * rows, own);
    if (theirs.dim() == 2) to = to.narrow(1, column, theirs.size(1));
    to.copy_(theirs.narrow(0, part * own, own));
  }
}

// Gates of Keras are update, reset and new state; ours are reset, update and new state.
const std::vector<int64_t> gate_order = {1, 0, 2};

void place_gru(NamedTensors& ours, const Weights& theirs, const std::string& gru,
               const std::string& name, const std::string& suffix) {
  const Tensor biases = theirs.variable(gru, 2, 2);
  if (biases.size(0) != 2)
    fail("model.weights.h5: {} has {} rows of biases; 2 are read", in_quotes(gru), biases.size(0));
  place(ours.at(name + "weight_ih" + suffix), theirs.variable(gru, 0, 2).t(), gate_order);
  place(ours.at(name + "weight_hh" + suffix), theirs.variable(gru, 1, 2).t(), gate_order);
  place(ours.at(name + "bias_ih" + suffix), biases[0], gate_order);
  place(ours.at(name + "bias_hh" + suffix), biases[1], gate_order);
}

// P and p of the annotations' projection P a + p, [units, annotation] and [units].
std::pair<Tensor, Tensor> projection(const Weights& theirs) {
  const KerasLayers& layers = theirs.layers();
  if (layers.projection.empty()) {
    const int64_t depth = 2 * theirs.units(layers.forward);
    return {at::eye(depth), at::zeros({depth})};
  }
  const Tensor matrix = theirs.variable(layers.projection, 0, 2).t();
  if (matrix.size(1) != 2 * theirs.units(layers.forward))
    fail("model.weights.h5: {} reads {} numbers of an annotation; there are {}",
         in_quotes(layers.projection), matrix.size(1), 2 * theirs.units(layers.forward));
  const Tensor bias = layers.projection_has_bias ? theirs.variable(layers.projection, 1, 1)
                                                 : at::zeros({matrix.size(0)});
  return {matrix, bias};
}

Seq2SeqConfig settings(const Weights& theirs) {
  const KerasLayers& layers = theirs.layers();
  const int64_t encoder = theirs.units(layers.forward), decoder = theirs.units(layers.decoder);
  const int64_t context = projection(theirs).first.size(0);
  if (context != decoder)
    fail("model.weights.h5: attention compares states of depth {} with annotations of depth {}",
         decoder, context);
  Seq2SeqConfig config;
  config.query = "state";
  config.embedding = std::max(theirs.variable(layers.source_embedding, 0, 2).size(1),
                              theirs.variable(layers.target_embedding, 0, 2).size(1));
  // The readout holds state and context.
  config.hidden = 2 * std::max(encoder, decoder);
  config.attention_depth = decoder;
  return config;
}

// Places columns that read annotations. Each direction of our encoder is wider.
void place_annotations(const Tensor& ours, const Tensor& theirs, int64_t first, int64_t units) {
  place(ours, theirs.slice(1, 0, units), {0}, first);
  const int64_t half = (ours.size(1) - first) / 2;
  place(ours, theirs.slice(1, units), {0}, first + half);
}

// Both pieces of the maxout layer are equal, so that it gives the decoder's state and the projected
// context unchanged.
void place_readout(NamedTensors& ours, const Weights& theirs, const Seq2SeqConfig& config) {
  const auto [matrix, bias] = projection(theirs);
  const int64_t units = matrix.size(0), hidden = config.hidden;
  const Tensor weight = at::zeros({hidden, 2 * hidden + config.embedding}),
               offset = at::zeros({hidden});
  place(weight, at::eye(units));
  place_annotations(weight.slice(0, units), matrix, hidden + config.embedding,
                    theirs.units(theirs.layers().forward));
  place(offset.slice(0, units), bias);
  ours.at("maxout.weight").copy_(weight.repeat_interleave(2, 0));
  ours.at("maxout.bias").copy_(offset.repeat_interleave(2, 0));
}

void place_attention(NamedTensors& ours, const Weights& theirs) {
  const auto [matrix, bias] = projection(theirs);
  const KerasLayers& layers = theirs.layers();
  place(ours.at("attention.W_q"), at::eye(matrix.size(0)));
  place_annotations(ours.at("attention.W_k"), matrix, 0, theirs.units(layers.forward));
  place(ours.at("attention.b"), bias);
  place(ours.at("attention.v"), layers.attention_has_scale ? theirs.variable(layers.attention, 0, 1)
                                                           : at::ones({matrix.size(0)}));
}

void place_tokens(NamedTensors& ours, const Weights& theirs, const KerasSide& source,
                  const KerasSide& target) {
  const KerasLayers& layers = theirs.layers();
  const int64_t begin = *target.id_of("\t"), end = *target.id_of("\n");
  const auto check = [](const Tensor& rows, const KerasSide& side, const char* name) {
    if (rows.size(0) != std::ssize(side.tokens))
      fail("model.weights.h5: {} tokens of the {}, and its tokenizer has {} with padding",
           rows.size(0), name, side.tokens.size());
  };
  const Tensor sources = theirs.variable(layers.source_embedding, 0, 2),
               targets = theirs.variable(layers.target_embedding, 0, 2),
               scores = theirs.variable(layers.output, 0, 2).t();
  check(sources, source, "source");
  check(targets, target, "target");
  check(scores, target, "answer");
  const int64_t unknown = source.id_of(source.unknown).value_or(padding_token);
  const std::vector<int64_t> rows = {padding_token, begin, end, padding_token};
  place(ours.at("source_embedding.weight"),
        with_fixed_rows(sources, {padding_token, padding_token, padding_token, unknown}));
  place(ours.at("target_embedding.weight"), with_fixed_rows(targets, rows));
  // Columns of scores: the decoder's state, then the projected context.
  place(ours.at("output.weight"), with_fixed_rows(scores, rows));
  Tensor bias = with_fixed_rows(theirs.variable(layers.output, 1, 1), rows);
  // EOS replaces their end.
  for (const int64_t id :
       {Vocabulary::padding, Vocabulary::bos, Vocabulary::unknown, fixed_token_count + end})
    bias[id] = never_answered;
  place(ours.at("output.bias"), bias);
}

TensorFile converted(const Weights& theirs, const PairModel& model, const KerasSide& source,
                     const KerasSide& target) {
  TensorFile made;
  for (const auto& parameter : attend::outline(model)->named_parameters())
    made.tensors[parameter.key()] = at::zeros(parameter.value().sizes(), at::kFloat);
  const KerasLayers& layers = theirs.layers();
  NamedTensors& ours = made.tensors;
  place_gru(ours, theirs, layers.forward, "encoder.layer0.", "_l0");
  place_gru(ours, theirs, layers.backward, "encoder.layer0.", "_l0_reverse");
  place_gru(ours, theirs, layers.decoder, "decoder.gru.", "");
  place_attention(ours, theirs);
  place_readout(ours, theirs, model.config.of<Seq2SeqConfig>());
  place_tokens(ours, theirs, source, target);
  return made;
}

PairModel described(const Weights& theirs, const TextTokenizer& tokenizer, const KerasSide& source,
                    const KerasSide& target) {
  PairModel model;
  model.config.type = "seq2seq";
  auto& config = model.config.of<Seq2SeqConfig>();
  config = settings(theirs);
  config.maximum_source_length = source.maximum_length;
  model.text = model.config.row().text;
  model.text.source_units = tokenizer_units;
  model.text.target_units = name_of(Units::character);
  model.text.tokenizer = "tokenizer.json";
  // Without a mask, the encoder and attention read padding as any token.
  model.text.fill_length = source.maximum_length;
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(tokenizer.size()));
  for (int32_t id = 0; id < tokenizer.size(); ++id) names.push_back(tokenizer.name(id));
  model.source_vocabulary = in_order(names, "its tokenizers");
  model.target_vocabulary = in_order(target_names(target), "its tokenizers");
  check_copies(model, import_copies, "import");
  return model;
}

}  // namespace

ForeignFile read_keras_model(const std::string& path) {
  std::map<std::string, std::string> entries = {{"config.json", ""}, {"model.weights.h5", ""}};
  read_zip(read_file(path), path, "a .keras file of Keras 3",
           [&](const std::string& entry, const std::string& bytes) {
             if (const auto found = entries.find(entry); found != entries.end())
               found->second = bytes;
           });
  for (const auto& [entry, bytes] : entries)
    if (bytes.empty()) fail("{}: lacks {}; save the model by Keras 3", path, entry);
  const auto [source, target] = read_sides(tokenizers_beside(path));
  TextTokenizer tokenizer = character_tokenizer(source);
  try {
    const std::string name = "config.json";
    const Json config = parse_json(entries[name], name);
    const Hdf5File file =
        Hdf5File::parse(std::move(entries["model.weights.h5"]), "model.weights.h5");
    const Weights theirs(file, read_keras_layers({config, name}));
    PairModel model = described(theirs, tokenizer, source, target);
    TensorFile made = converted(theirs, model, source, target);
    return {std::move(model), std::move(tokenizer), std::move(made)};
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  }
}

}  // namespace attend::internal
