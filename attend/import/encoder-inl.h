#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/import/config_keys-inl.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/source_encoder.h"

namespace attend::internal {

// Output of a foreign encoder.
enum class EncoderHead { none, masked_words, labels, token_labels, span };

// Class of transformers with the encoder of a type.
struct EncoderArchitecture {
  std::string name;
  EncoderHead head = EncoderHead::none;
  std::vector<TensorRow> tensors = {};  // in addition to the encoder's
  // Activation of the layer below the labels; empty: read_more reads it.
  std::optional<HiddenActivation> pooled = HiddenActivation::tanh;
  // The layer below the masked words always has gelu, whatever the other layers have.
  bool gelu_below_words = false;
  // Names of the labels of tokens if config.json lacks them; the output then has one number, the
  // score of the second label, on top of a layer without a norm. Empty: a number per label.
  std::vector<std::string> two_labels = {};
};

// Keys of the sizes of layers in config.json.
struct LayerKeys {
  const char* depth = "hidden_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* feed_forward = "intermediate_size";
  const char* activation = "hidden_act";
};

// Reads these keys. Error on an unsupported size, and if heads do not divide the depth.
void read_layer_sizes(const JsonPosition& config, const LayerKeys& keys,
                      SourceEncoderConfig& encoder);

// Error if rotation by positions cannot pair the columns of a head.
void check_rotated_heads(const JsonPosition& config, const LayerKeys& keys,
                         const SourceEncoderConfig& encoder);

// Type of models with BERT's encoder (Devlin et al. 2019): post-norm layers, learned positions,
// a norm of the embeddings. The first members are keys of its config.json.
struct EncoderType {
  LayerKeys sizes = {};
  const char* dropout = "hidden_dropout_prob";
  const char* attention_dropout = "attention_probs_dropout_prob";
  const char* label_dropout = "classifier_dropout";
  // Dropout before the scores of answers that are spans; null: 0.
  const char* span_dropout = nullptr;
  const char* epsilon = "layer_norm_eps";  // null: it is 1e-12
  // The first position comes after the padding position (RoBERTa).
  bool positions_after_padding = false;
  // Pre-norm layers with rotary positions instead (ESM-2).
  bool rotary = false;
  const char* embedding = nullptr;  // depth of token vectors; null: the depth of the layers
  bool shares_layers = false;       // layers share parameters
  bool shares_bias = false;         // layers share a bias of distances
  // Layers share vectors of distances, by which they add terms to the scores (DeBERTa).
  bool relative = false;
  std::string prefix;
  std::vector<ConfigKey> keys;
  std::vector<TensorRow> tensors;
  std::vector<EncoderArchitecture> architectures;
  // Reads what only this type has; null: nothing.
  void (*read_more)(const JsonPosition& config, ForeignModel& model) = nullptr;
  // Writes the keys that read_more reads, for a model of ours; null: nothing.
  void (*write_more)(ModelConfig& ours, Json& config) = nullptr;
};

// Our type with such a head, and the settings of its encoder.
const char* type_of(EncoderHead head);
SourceEncoderConfig& encoder_of(ModelConfig& config, EncoderHead head);
// The settings of the model's encoder; null for other types than type_of() returns.
SourceEncoderConfig* find_encoder(ModelConfig& config);
// Limits an encoder to `maximum` tokens; leaves other models unchanged.
void limit_source(int64_t maximum, ModelConfig& config);

// Reads the labels of a classifier; a single label means that it answers with a number
// (regression). Error if several labels apply at once.
void read_answers(const JsonPosition& config, ForeignModel& model);

// Reads the labels of a tagger without recurrent layers, and the dropout before its output from the
// key or `otherwise`.
void read_token_labels(const JsonPosition& config, const char* dropout_key, double otherwise,
                       ForeignModel& model);

// Reads a type that answers with spans, with that dropout before its output.
void read_span(double dropout, ForeignModel& model);

ForeignModel read_encoder(const JsonPosition& config, const EncoderType& type);

// Returns the classes of the table with the tensors of their heads.
std::vector<ForeignClass> classes_of(const std::vector<EncoderArchitecture>& architectures);

const EncoderType& bert_type();
const EncoderType& distilbert_type();
const EncoderType& albert_type();
const EncoderType& electra_type();
const EncoderType& esm_type();
const EncoderType& mpnet_type();
const EncoderType& deberta_type();

// Names of a part with a weight and a bias.
struct PartNames {
  std::string theirs, ours;
  TensorUse use = TensorUse::copied;
};
// Adds the weight and the bias of each part; their and our names begin with the prefixes.
void add_rows(const std::vector<PartNames>& parts, const std::string& theirs,
              const std::string& ours, std::vector<TensorRow>& rows);
std::vector<TensorRow> rows_of(const std::vector<PartNames>& parts);
// Adds the weights and the biases of parts of theirs that our model lacks.
std::vector<TensorRow> with_unused(std::vector<TensorRow> rows,
                                   const std::vector<std::string>& parts);
// Rows of a layer, its norm and an output that shares the vectors of the tokens. `output` has a
// bias and, except in some files, copies of both.
std::vector<TensorRow> word_head(const std::string& layer, const std::string& norm,
                                 const std::string& output);
// Adds the layers of BERT; `heads` ends the names of the maps to queries, keys and values.
void add_bert_layers(const std::string& heads, std::vector<TensorRow>& rows);
// Prefix of our names of the parts of each layer.
inline constexpr const char* layer_prefix = "encoder.layers.layer{}_";

// Inserts rows with the prefix; rows of the head stay last.
void insert_rows(ForeignModel& model, const std::vector<TensorRow>& rows);

// Adds the contact head of ESM-2 to the settings and tensors of a model.
void add_contact_head(ForeignModel& model);
// Name of the tensor with the frequencies of layer {} in a file of ESM-2.
extern const char* const esm_frequencies;

// Returns ModernBERT's class for one of our types; null if there is none.
const EncoderArchitecture* find_modernbert(const std::string& type);

// Tensors and keys of BERT and of types with the same names.
std::vector<TensorRow> bert_tensors();
std::vector<ConfigKey> bert_keys();

}  // namespace attend::internal
