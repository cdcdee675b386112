#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/import/config_keys-inl.h"
#include "attend/import/foreign_model-inl.h"
#include "attend/models/source_encoder.h"

namespace attend::internal {

// What a foreign encoder answers with.
enum class EncoderHead { none, masked_words, labels, token_labels };

// A class of transformers that has the encoder of a type.
struct EncoderArchitecture {
  std::string name;
  EncoderHead head = EncoderHead::none;
  std::vector<TensorRow> tensors = {};               // beside those of the encoder
  HiddenActivation pooled = HiddenActivation::tanh;  // of the layer below the labels
  // A layer below the masked words that has gelu, whatever the others have.
  bool gelu_below_words = false;
};

// What config.json calls the sizes of layers.
struct LayerKeys {
  const char* depth = "hidden_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* feed_forward = "intermediate_size";
  const char* activation = "hidden_act";
};

// Reads what these keys say. Error on a size that is not read, and on heads that do not divide the
// depth.
void read_layer_sizes(const JsonPlace& config, const LayerKeys& keys, SourceEncoderConfig& encoder);

// A type whose models are BERT's encoder (Devlin et al. 2019): post-norm layers, learned positions,
// a norm of the embeddings. The first members are keys of its config.json.
struct EncoderType {
  LayerKeys sizes = {};
  const char* dropout;
  const char* attention_dropout;
  const char* label_dropout;
  const char* epsilon;  // null: it is 1e-12
  // Positions begin behind that of padding (RoBERTa).
  bool positions_behind_padding = false;
  std::string prefix;
  std::vector<ConfigKey> keys;
  std::vector<TensorRow> tensors;
  std::vector<EncoderArchitecture> architectures;
};

// The type of ours that has such a head, and its encoder's settings.
const char* type_of(EncoderHead head);
SourceEncoderConfig& encoder_of(ModelConfig& config, EncoderHead head);
// Has an encoder read so many tokens at most; other models stay as they are.
void limit_source(int64_t most, ModelConfig& config);

// The labels of a classifier, or, where there is one, that it answers a number (regression). Error
// on several labels at once.
void read_answers(const JsonPlace& config, ForeignModel& model);

// The labels of a tagger whose layers alone read the text, and its dropout below them: that of the
// key, or `otherwise`.
void read_token_labels(const JsonPlace& config, const char* dropout_key, double otherwise,
                       ForeignModel& model);

ForeignModel read_encoder(const JsonPlace& config, const EncoderType& type);

// Returns the classes of the table with the tensors of their heads.
std::vector<ForeignClass> classes_of(const std::vector<EncoderArchitecture>& architectures);

const EncoderType& bert_type();
const EncoderType& distilbert_type();

// The class of ModernBERT that becomes such a type of ours; null where there is none.
const EncoderArchitecture* find_modernbert(const std::string& type);

// Those of BERT and of what is named like it.
std::vector<TensorRow> bert_tensors();
std::vector<ConfigKey> bert_keys();

}  // namespace attend::internal
