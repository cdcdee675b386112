#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "attend/import/config_keys-inl.h"
#include "attend/import/keras-inl.h"

namespace attend::internal {
namespace {

struct Layer {
  std::string name, type;
  JsonPosition config;
  std::string weights;              // path in model.weights.h5
  std::vector<std::string> inputs;  // names of layers
};

// MultiHeadAttention -> multi_head_attention
std::string snake_case(const std::string& type) {
  std::string name;
  for (const char c : type) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !name.empty() && name.back() != '_' && !(name.back() >= 'A' && name.back() <= 'Z'))
      name += '_';
    name += c;
  }
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

// Adds the names of the layers that compute the tensors of an argument.
void add_inputs(const Json& value, std::vector<std::string>& names) {
  if (value.is_array())
    for (const Json& each : value) add_inputs(each, names);
  if (!value.is_object()) return;
  const Json history = value.value(Json::json_pointer("/config/keras_history"), Json());
  if (history.is_array() && !history.empty() && history[0].is_string())
    names.push_back(history[0].get<std::string>());
}

// Adds the inputs of a call of a layer. Named arguments, such as initial_state, may be tensors,
// too. Error on a flag that is set, such as use_causal_mask.
void add_call(const JsonPosition& call, Layer& layer) {
  add_inputs(call.value().value("args", Json::array()), layer.inputs);
  if (!call.has("kwargs")) return;
  const JsonPosition named = call.member("kwargs");
  for (const auto& [name, value] : named.value().items()) {
    add_inputs(value, layer.inputs);
    if (value == true) named.member(name.c_str()).refuse("is true; only false is read");
  }
}

class Graph {
 public:
  explicit Graph(const JsonPosition& model) {
    std::map<std::string, int> seen;
    const JsonPosition inner = model.member("config");
    for (const JsonPosition& each : inner.member("layers").list()) {
      Layer layer{each.member("name").text(),
                  each.member("class_name").text(),
                  each.member("config"),
                  {},
                  {}};
      const std::string base = snake_case(layer.type);
      const int before = seen[base]++;
      layer.weights = "layers/" + base + (before == 0 ? std::string() : fmt::format("_{}", before));
      for (const JsonPosition& node : each.member("inbound_nodes").list()) add_call(node, layer);
      layers_.push_back(std::move(layer));
    }
  }

  // The only layer of a type for which `is_wanted` holds.
  template <class Wanted>
  const Layer& only(const JsonPosition& model, const std::string& type, Wanted is_wanted) const {
    const Layer* found = nullptr;
    for (const Layer& layer : layers_) {
      if (layer.type != type || !is_wanted(layer)) continue;
      if (found != nullptr)
        layer.config.refuse("is the second {} of its kind; models with one are read", type);
      found = &layer;
    }
    if (found == nullptr)
      model.refuse(
          "has no such layer {}; recurrent encoder-decoders with AdditiveAttention are read", type);
    return *found;
  }
  const Layer& only(const JsonPosition& model, const std::string& type) const {
    return only(model, type, [](const Layer&) { return true; });
  }

  const Layer& named(const Layer& reader, size_t input, size_t inputs) const {
    if (reader.inputs.size() != inputs)
      reader.config.refuse("belongs to {}, which reads {} tensors; {} are read", reader.name,
                           reader.inputs.size(), inputs);
    const auto found = std::find_if(layers_.begin(), layers_.end(), [&](const Layer& layer) {
      return layer.name == reader.inputs[input];
    });
    if (found == layers_.end())
      reader.config.refuse("belongs to {}, which reads the missing {}", reader.name,
                           in_quotes(reader.inputs[input]));
    return *found;
  }

 private:
  std::vector<Layer> layers_;
};

void check_type(const Layer& layer, std::initializer_list<const char*> types) {
  if (std::find(types.begin(), types.end(), layer.type) == types.end())
    layer.config.refuse("is a layer {}; here {} is read", layer.type, *types.begin());
}

// Error unless these keys have these values, or are missing.
void check_only(const JsonPosition& config,
                std::initializer_list<std::pair<const char*, Json>> values) {
  for (const auto& [key, value] : values)
    if (config.has(key) && config.member(key).value() != value)
      config.member(key).refuse("is {}; only {} is read", shown(config.member(key).value()),
                                value.dump());
}

void check_gru(const JsonPosition& config, bool backward) {
  check_only(config, {{"activation", "tanh"},
                      {"recurrent_activation", "sigmoid"},
                      {"use_bias", true},
                      {"reset_after", true},
                      {"return_sequences", true},
                      {"go_backwards", backward},
                      {"stateful", false}});
}

void check_direction(const JsonPosition& layer, bool backward) {
  const JsonPosition type = layer.member("class_name");
  if (type.text() != "GRU") type.refuse("is {}; only GRU is read", type.text());
  check_gru(layer.member("config"), backward);
}

// A Dense layer, or one that TimeDistributed holds, without activation.
void read_projection(const Layer& layer, KerasLayers& found) {
  const bool wrapped = layer.config.has("layer");
  if (wrapped && layer.config.member("layer").member("class_name").text() != "Dense")
    layer.config.member("layer").member("class_name").refuse("is not Dense");
  const JsonPosition config =
      wrapped ? layer.config.member("layer").member("config") : layer.config;
  check_only(config, {{"activation", "linear"}});
  found.projection_has_bias = config.flag("use_bias", true);
  found.projection = layer.weights + (wrapped ? "/layer" : "");
}

}  // namespace

KerasLayers read_keras_layers(const JsonPosition& config) {
  const Graph graph(config);
  KerasLayers found;
  const Layer& attention = graph.only(config, "AdditiveAttention");
  const Layer& decoder = graph.named(attention, 0, 2);
  check_type(decoder, {"GRU"});
  check_gru(decoder.config, false);
  const Layer& values = graph.named(attention, 1, 2);
  check_type(values, {"Dense", "TimeDistributed", "Bidirectional"});
  const bool projects = !values.config.has("merge_mode");
  if (projects) read_projection(values, found);
  const Layer& encoder = projects ? graph.named(values, 0, 1) : values;
  check_type(encoder, {"Bidirectional"});
  check_only(encoder.config, {{"merge_mode", "concat"}});
  check_direction(encoder.config.member("layer"), false);
  if (encoder.config.has("backward_layer"))
    check_direction(encoder.config.member("backward_layer"), true);
  const Layer& source = graph.named(encoder, 0, 1);
  const Layer& target = graph.named(decoder, 0, 1);
  check_type(source, {"Embedding"});
  check_type(target, {"Embedding"});
  const Layer& output = graph.only(config, "Dense", [](const Layer& layer) {
    return layer.config.text("activation", "linear") == "softmax";
  });
  check_only(output.config, {{"use_bias", true}});
  const Layer& joined = graph.named(output, 0, 1);
  check_type(joined, {"Concatenate"});
  check_only(joined.config, {{"axis", -1}});
  if (graph.named(joined, 0, 2).name != decoder.name ||
      graph.named(joined, 1, 2).name != attention.name)
    joined.config.refuse("belongs to {}, which does not join the decoder's state with the context",
                         joined.name);
  found.source_embedding = source.weights;
  found.target_embedding = target.weights;
  found.forward = encoder.weights + "/forward_layer/cell";
  found.backward = encoder.weights + "/backward_layer/cell";
  found.decoder = decoder.weights + "/cell";
  found.attention = attention.weights;
  found.attention_has_scale = attention.config.flag("use_scale", true);
  found.output = output.weights;
  check_only(source.config, {{"mask_zero", false}});
  check_only(target.config, {{"mask_zero", false}});
  return found;
}

}  // namespace attend::internal
