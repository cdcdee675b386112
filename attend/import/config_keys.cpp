#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "attend/base/find_row.h"
#include "attend/import/config_keys-inl.h"
#include "attend/text/units.h"
#include "attend/text/vocabulary.h"

namespace attend::internal {
namespace {

constexpr int64_t max_classes = 100'000;

// Well-known keys that change no result in any type: names, training, heads that are not read, and
// keys that are read elsewhere (labels, tokens, generation.cpp). Unknown keys are ignored, too, but
// listed in a note.
constexpr std::string_view keys_without_effect[] = {"_attn_implementation",
                                                    "_attn_implementation_autoset",
                                                    "_name_or_path",
                                                    "_num_labels",
                                                    "architectures",
                                                    "attn_implementation",
                                                    "bad_words_ids",
                                                    "begin_suppress_tokens",
                                                    "bos_token_id",
                                                    "chunk_size_feed_forward",
                                                    "classif_dropout",
                                                    "cls_token_id",
                                                    "decoder_layerdrop",
                                                    "decoder_start_token_id",
                                                    "deterministic_flash_attn",
                                                    "directionality",
                                                    "diversity_penalty",
                                                    "do_sample",
                                                    "dtype",
                                                    "early_stopping",
                                                    "encoder_layerdrop",
                                                    "encoder_no_repeat_ngram_size",
                                                    "encoder_stride",
                                                    "eos_token_id",
                                                    "eos_token_ids",
                                                    "exponential_decay_length_penalty",
                                                    "extra_pos_embeddings",
                                                    "finetuning_task",
                                                    "forced_bos_token_id",
                                                    "forced_eos_token_id",
                                                    "gradient_checkpointing",
                                                    "id2label",
                                                    "init_std",
                                                    "initializer_cutoff_factor",
                                                    "initializer_range",
                                                    "label2id",
                                                    "length_penalty",
                                                    "mask_token_id",
                                                    "max_length",
                                                    "min_length",
                                                    "model_type",
                                                    "n_ctx",
                                                    "n_special",
                                                    "name_or_path",
                                                    "no_repeat_ngram_size",
                                                    "num_beam_groups",
                                                    "num_beams",
                                                    "num_labels",
                                                    "num_return_sequences",
                                                    "output_attentions",
                                                    "output_hidden_states",
                                                    "output_past",
                                                    "output_scores",
                                                    "pad_token_id",
                                                    "pooler_act",
                                                    "pooler_fc_size",
                                                    "pooler_num_attention_heads",
                                                    "pooler_num_fc_layers",
                                                    "pooler_output_size",
                                                    "pooler_size_per_head",
                                                    "pooler_type",
                                                    "predict_special_tokens",
                                                    "prefix",
                                                    "problem_type",
                                                    "qa_dropout",
                                                    "reference_compile",
                                                    "remove_invalid_values",
                                                    "reorder_and_upcast_attn",
                                                    "repad_logits_with_grad",
                                                    "repetition_penalty",
                                                    "return_dict",
                                                    "return_dict_in_generate",
                                                    "sep_token_id",
                                                    "sinusoidal_pos_embds",
                                                    "sparse_pred_ignore_index",
                                                    "sparse_prediction",
                                                    "summary_activation",
                                                    "summary_first_dropout",
                                                    "summary_proj_to_labels",
                                                    "summary_type",
                                                    "summary_use_proj",
                                                    "suppress_tokens",
                                                    "task_specific_params",
                                                    "temperature",
                                                    "tf_legacy_loss",
                                                    "tie_weights_",
                                                    "tie_word_embeddings",
                                                    "tokenizer_class",
                                                    "top_k",
                                                    "top_p",
                                                    "torch_dtype",
                                                    "torchscript",
                                                    "transformers.js_config",
                                                    "transformers_version",
                                                    "typical_p",
                                                    "use_bfloat16",
                                                    "use_cache",
                                                    "xla_device"};

// Keys that change the results of every type.
const std::vector<ConfigKey>& common_keys() {
  static const std::vector<ConfigKey> table = {
      {"is_decoder", "false"},
      {"is_encoder_decoder", "false"},
      {"add_cross_attention", "false"},
      {"tie_encoder_decoder", "false"},
      {"pruned_heads", "{}"},
      {"auto_map", "{}",
       "the model has its own code, which is not run; remove the key if the class of transformers "
       "computes the same"},
      {"quantization_config", "{}",
       "quantised weights are not read; fetch the model with its weights as numbers"},
      {"sbert_ce_default_activation_function"},  // read by read_pairs()
      {"sentence_transformers"},
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

void check_value(const JsonPosition& object, const ConfigKey& key) {
  const JsonPosition place = object.member(key.name.c_str());
  if (key.only.empty() || place.value() == Json::parse(key.only)) return;
  if (key.reason.empty())
    place.refuse("is {}, which is not supported; only {} is", in_quotes(shown(place.value())),
                 key.only);
  place.refuse("is {}, which is not supported: {}", in_quotes(shown(place.value())), key.reason);
}

// Purposes of classes that are not read, by the end of the class name.
struct ClassPurpose {
  std::string_view ending;
  const char* purpose;
};

constexpr ClassPurpose class_purposes[] = {
    {"ForQuestionAnswering", "answers a question with a part of a text"},
    {"ForMultipleChoice", "chooses between pairs of texts"},
    {"ForNextSentencePrediction", "judges pairs of texts"},
    {"ForCausalLM", "an encoder that continues texts"},
    {"BertLMHeadModel", "an encoder that continues texts"},
    {"GPT2Model", "vectors of a decoder's tokens"},
    {"GPT2DoubleHeadsModel", "chooses between continuations"},
    {"GPT2ForSequenceClassification", "labels by the last token of a decoder"},
    {"GPT2ForTokenClassification", "labels of a decoder's tokens"},
    {"MarianModel", "vectors without an output"},
    {"ViTModel", "vectors of images, which no model type here gives"},
    {"DeiTModel", "vectors of images, which no model type here gives"},
    {"ForMaskedImageModeling", "fills in parts of images"},
    {"WithTeacher", "the mean of two heads"},
};

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

// Appends its number to each label that equals an earlier label or a fixed token.
void make_distinct(const JsonPosition& config, const char* separator,
                   std::vector<std::string>& labels, Notes& notes) {
  constexpr size_t max_shown = 8;
  const Vocabulary fixed;
  std::set<std::string> names;
  for (int64_t id = 0; id < fixed.size(); ++id) names.insert(fixed.token(id));
  std::vector<std::string> changed;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (names.insert(labels[i]).second) continue;
    do labels[i] += fmt::format("{}({})", separator, i);
    while (!names.insert(labels[i]).second);
    changed.push_back(in_quotes(labels[i]));
  }
  if (changed.empty()) return;
  const size_t count = changed.size();
  changed.resize(std::min(count, max_shown));
  notes.push_back(
      fmt::format("{}: id2label: {} labels got their number, to differ from others: {}{}",
                  config.file(), count, fmt::join(changed, ", "), count > max_shown ? ", .." : ""));
}

}  // namespace

std::string purpose_of_class(const std::string& name) {
  for (const ClassPurpose& row : class_purposes)
    if (name.ends_with(row.ending)) return fmt::format(" ({})", row.purpose);
  return "";
}

std::string shown(const Json& value) {
  constexpr size_t longest = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > longest) text = text.substr(0, longest) + "..";
  return text;
}

void check_keys(const JsonPosition& object, const std::vector<ConfigKey>& known) {
  for (const auto& [name, value] : object.value().items()) {
    if (value.is_null() || is_without_effect(name)) continue;
    const ConfigKey* key = find_key(known, name);
    if (key == nullptr)
      object.refuse(
          "has the key {}, which is unknown here and may change results; remove it if it does not",
          in_quotes(name));
    check_value(object, *key);
  }
}

void check_values(const JsonPosition& config, const std::vector<ConfigKey>& own, Notes& notes) {
  if (!config.value().is_object()) config.refuse("is not an object");
  std::vector<std::string> others;
  for (const auto& [name, value] : config.value().items()) {
    if (value.is_null() || is_without_effect(name)) continue;
    const ConfigKey* key = find_key(own, name);
    if (key == nullptr) key = find_key(common_keys(), name);
    if (key != nullptr)
      check_value(config, *key);
    else
      others.push_back(in_quotes(name));
  }
  if (!others.empty())
    notes.push_back(fmt::format("{}: ignored, because they change no result: {}", config.file(),
                                fmt::join(others, ", ")));
}

int64_t size_in(const JsonPosition& config, const char* key, int64_t maximum) {
  const JsonPosition place = config.member(key);
  const int64_t size = place.number();
  if (size < 1 || size > maximum) place.refuse("is {}; 1 to {} are read", size, maximum);
  return size;
}

int64_t token_in(const JsonPosition& config, const char* key, int64_t tokens) {
  const JsonPosition place = config.member(key);
  const int64_t id = place.number();
  if (id < 0 || id >= tokens) place.refuse("is {}; there are {} tokens", id, tokens);
  return id;
}

double real_in(const JsonPosition& config, const char* key, double otherwise, double least,
               double maximum) {
  const double value = config.real(key, otherwise);
  if (!(value >= least && value <= maximum))
    config.member(key).refuse("is {}; {} to {} are read", value, least, maximum);
  return value;
}

HiddenActivation activation_in(const JsonPosition& config, const char* key, const char* otherwise) {
  const std::string name = config.text(key, otherwise);
  std::string known;
  for (const ActivationName& row : activation_names()) {
    if (row.name == name) return row.activation;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  config.member(key).refuse("is {}, which is not supported; {} are", in_quotes(name), known);
}

std::string activation_name(HiddenActivation activation) {
  const auto& table = activation_names();
  return std::find_if(table.begin(), table.end(),
                      [&](const ActivationName& row) { return row.activation == activation; })
      ->name;
}

int64_t end_token_in(const JsonPosition& config, int64_t tokens, Notes& notes) {
  const JsonPosition place = config.member("eos_token_id");
  if (!place.value().is_array()) return token_in(config, "eos_token_id", tokens);
  const std::vector<JsonPosition> all = place.list();
  if (all.empty()) place.refuse("names no token; write the one that ends answers");
  for (const JsonPosition& each : all)
    if (each.number() >= tokens) each.refuse("is {}; there are {} tokens", each.number(), tokens);
  if (all.size() > 1)
    notes.push_back(
        fmt::format("{}: eos_token_id names {} tokens; only the first, {}, ends answers here",
                    config.file(), all.size(), all[0].number()));
  return all[0].number();
}

std::vector<std::string> labels_in(const JsonPosition& config, Notes& notes) {
  std::vector<std::string> labels = answers_in(config, notes);
  if (labels.size() < 2)
    config.refuse(
        "has one label, so it answers a number; only models with labels are read for this class");
  return labels;
}

std::vector<std::string> words_in(const JsonPosition& config, Notes& notes) {
  std::vector<std::string> labels = labels_in(config, notes);
  std::vector<std::string> changed;
  for (std::string& label : labels) {
    const std::vector<std::string> words = split_units(label, Units::space);
    if (words.size() == 1) continue;
    label = fmt::format("{}", fmt::join(words, "_"));
    changed.push_back(in_quotes(label));
  }
  if (!changed.empty())
    notes.push_back(fmt::format("{}: labels of words: white space became _: {}", config.file(),
                                fmt::join(changed, ", ")));
  make_distinct(config, "_", labels, notes);
  return labels;
}

std::vector<std::string> answers_in(const JsonPosition& config, Notes& notes) {
  std::vector<std::string> labels;
  if (!config.has("id2label")) {
    const int64_t count = config.has("num_labels") ? size_in(config, "num_labels", max_classes) : 2;
    for (int64_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
    return labels;
  }
  const JsonPosition names = config.member("id2label");
  const size_t count = names.value().is_object() ? names.value().size() : 0;
  if (count < 1 || count > max_classes)
    names.refuse("has {} labels; 1 to {} are read", count, max_classes);
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    if (!names.has(number.c_str()))
      names.refuse("has {} labels and none for {}; number them from 0", count, number);
    const JsonPosition place = names.member(number.c_str());
    const bool is_number = place.value().is_number() || place.value().is_boolean();
    // Read in the same way as targets in data.
    const std::vector<std::string> read =
        split_units(is_number ? place.value().dump() : place.text(), Units::line);
    labels.push_back(read.empty() ? "LABEL_" + number : read[0]);
  }
  make_distinct(config, " ", labels, notes);
  return labels;
}

}  // namespace attend::internal
