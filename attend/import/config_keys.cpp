#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "attend/base/find_row.h"
#include "attend/data/units.h"
#include "attend/import/config_keys-inl.h"

namespace attend::internal {
namespace {

constexpr int64_t most_labels = 100'000;

// Keys that every type has and that change no result: names, and what trains or searches.
constexpr std::string_view keys_without_effect[] = {"architectures",
                                                    "model_type",
                                                    "_name_or_path",
                                                    "name_or_path",
                                                    "transformers_version",
                                                    "torch_dtype",
                                                    "dtype",
                                                    "use_bfloat16",
                                                    "use_cache",
                                                    "initializer_range",
                                                    "gradient_checkpointing",
                                                    "id2label",
                                                    "label2id",
                                                    "num_labels",
                                                    "finetuning_task",
                                                    "task_specific_params",
                                                    "tokenizer_class",
                                                    "return_dict",
                                                    "output_attentions",
                                                    "output_hidden_states",
                                                    "output_past",
                                                    "torchscript",
                                                    "tf_legacy_loss",
                                                    "pad_token_id",
                                                    "bos_token_id",
                                                    "eos_token_id",
                                                    "sep_token_id",
                                                    "cls_token_id",
                                                    "mask_token_id",
                                                    "decoder_start_token_id",
                                                    "chunk_size_feed_forward",
                                                    "max_length",
                                                    "min_length",
                                                    "do_sample",
                                                    "early_stopping",
                                                    "num_beams",
                                                    "num_beam_groups",
                                                    "diversity_penalty",
                                                    "temperature",
                                                    "top_k",
                                                    "top_p",
                                                    "typical_p",
                                                    "repetition_penalty",
                                                    "length_penalty",
                                                    "no_repeat_ngram_size",
                                                    "encoder_no_repeat_ngram_size",
                                                    "bad_words_ids",
                                                    "num_return_sequences",
                                                    "output_scores",
                                                    "return_dict_in_generate",
                                                    "forced_bos_token_id",
                                                    "forced_eos_token_id",
                                                    "remove_invalid_values",
                                                    "exponential_decay_length_penalty",
                                                    "suppress_tokens",
                                                    "begin_suppress_tokens",
                                                    "prefix"};

// Those that every type has, with the value that is honoured.
const std::vector<ConfigKey>& common_keys() {
  static const std::vector<ConfigKey> table = {
      {"problem_type", R"("single_label_classification")"},
      {"is_decoder", "false"},
      {"is_encoder_decoder", "false"},
      {"add_cross_attention", "false"},
      {"tie_encoder_decoder", "false"},
      {"tie_word_embeddings", "true"},
      {"pruned_heads", "{}"},
  };
  return table;
}

bool is_without_effect(std::string_view name) {
  return std::find(std::begin(keys_without_effect), std::end(keys_without_effect), name) !=
         std::end(keys_without_effect);
}

const ConfigKey* find_key(const std::vector<ConfigKey>& keys, const std::string& name) {
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const ConfigKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

struct ActivationName {
  std::string name;
  HiddenActivation activation;
};

const std::vector<ActivationName>& activation_names() {
  static const std::vector<ActivationName> table = {
      {"gelu", HiddenActivation::gelu},
      {"gelu_new", HiddenActivation::gelu_tanh},
      {"gelu_pytorch_tanh", HiddenActivation::gelu_tanh},
      {"relu", HiddenActivation::relu},
      {"tanh", HiddenActivation::tanh},
      {"silu", HiddenActivation::swish},
      {"swish", HiddenActivation::swish},
  };
  return table;
}

}  // namespace

void check_keys(const JsonPlace& config, const std::vector<ConfigKey>& own) {
  for (const auto& [name, value] : config.value().items()) {
    if (value.is_null() || is_without_effect(name)) continue;
    const ConfigKey* key = find_key(own, name);
    if (key == nullptr) key = find_key(common_keys(), name);
    if (key == nullptr)
      config.refuse(
          "has the key {}, which this type is not known to have and which may change results; take "
          "it out if it does not",
          in_quotes(name));
    if (!key->only.empty() && value != Json::parse(key->only))
      config.member(name.c_str())
          .refuse("is {}, which is not honoured; only {} is", in_quotes(value.dump()), key->only);
  }
}

int64_t size_in(const JsonPlace& config, const char* key, int64_t most) {
  const JsonPlace place = config.member(key);
  const int64_t size = place.number();
  if (size < 1 || size > most) place.refuse("is {}; 1 to {} are read", size, most);
  return size;
}

int64_t token_in(const JsonPlace& config, const char* key, int64_t tokens) {
  const JsonPlace place = config.member(key);
  const int64_t id = place.number();
  if (id < 0 || id >= tokens) place.refuse("is {}; there are {} tokens", id, tokens);
  return id;
}

double real_in(const JsonPlace& config, const char* key, double otherwise, double least,
               double most) {
  const double value = config.real(key, otherwise);
  if (!(value >= least && value <= most))
    config.member(key).refuse("is {}; {} to {} are read", value, least, most);
  return value;
}

HiddenActivation activation_in(const JsonPlace& config, const char* key, const char* otherwise) {
  const std::string name = config.text(key, otherwise);
  std::string known;
  for (const ActivationName& row : activation_names()) {
    if (row.name == name) return row.activation;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  config.member(key).refuse("is {}, which is not honoured; {} are", in_quotes(name), known);
}

std::string activation_name(HiddenActivation activation) {
  const auto& table = activation_names();
  return std::find_if(table.begin(), table.end(),
                      [&](const ActivationName& row) { return row.activation == activation; })
      ->name;
}

std::vector<std::string> labels_in(const JsonPlace& config) {
  std::vector<std::string> labels = answers_in(config);
  if (labels.size() < 2)
    config.refuse("has one label, which is a number in place of a label; this is not read");
  return labels;
}

std::vector<std::string> words_in(const JsonPlace& config) {
  std::vector<std::string> labels = labels_in(config);
  for (const std::string& label : labels)
    if (split_units(label, Units::space).size() != 1)
      config.refuse("has the label {}, whose white space would make several of it",
                    in_quotes(label));
  return labels;
}

std::vector<std::string> answers_in(const JsonPlace& config) {
  std::vector<std::string> labels;
  if (!config.has("id2label")) {
    const int64_t count = config.has("num_labels") ? size_in(config, "num_labels", most_labels) : 2;
    for (int64_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  } else {
    const JsonPlace names = config.member("id2label");
    const size_t count = names.value().is_object() ? names.value().size() : 0;
    if (count < 1 || count > most_labels)
      names.refuse("has {} labels; 1 to {} are read", count, most_labels);
    for (size_t i = 0; i < count; ++i) {
      const std::string label = names.member(std::to_string(i).c_str()).text();
      // As targets in data are read.
      const std::vector<std::string> read = split_units(label, Units::line);
      if (read.empty()) names.refuse("has an empty label, {}", i);
      labels.push_back(read[0]);
    }
  }
  const std::set<std::string> distinct(labels.begin(), labels.end());
  if (distinct.size() != labels.size()) config.refuse("has a label twice in id2label");
  return labels;
}

}  // namespace attend::internal
