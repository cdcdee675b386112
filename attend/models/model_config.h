#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attend/base/settings.h"
#include "attend/data/text_config.h"
#include "attend/models/classifier.h"
#include "attend/models/language_model.h"
#include "attend/models/masked_language_model.h"
#include "attend/models/pair_network.h"
#include "attend/models/seq2seq.h"
#include "attend/models/source_input.h"
#include "attend/models/transformer.h"
#include "attend/models/vit.h"

namespace attend {

// What the network is, and the settings of each type.
struct ModelConfig {
  std::string type = "seq2seq";  // or "transformer", "classifier", "vit", "lm", "encoder"
  Seq2SeqConfig seq2seq;
  TransformerConfig transformer;
  ClassifierConfig classifier;
  VitConfig vit;
  LanguageModelConfig lm;
  MaskedLanguageModelConfig encoder;

  // Whether the answer is one label.
  bool is_classifier() const { return type == "classifier" || type == "vit"; }
  bool is_language_model() const { return type == "lm"; }
  bool is_masked() const { return type == "encoder"; }
  bool learns_from_text() const { return is_language_model() || is_masked(); }

  // Tokens of a source that are read: the first, or of a language model the last.
  int64_t maximum_source_length() const;
  // Tokens of a target that training takes.
  int64_t maximum_target_length() const;
  bool wants_joint_vocabulary() const;  // of sources and targets

  Setting type_setting();
  Settings settings();  // model.type, and the keys model.* of that type

  // Error when the settings of the type describe no model.
  void check() const;

  // A new network of that type, its weights drawn from LibTorch's default generator. Error on a
  // source that the type does not read.
  std::shared_ptr<PairNetwork> make_network(const SourceShape& source, int64_t target_tokens) const;
};

// Where a decoder that does not end its answer is stopped, in tokens; no pair in practice comes
// near this.
int64_t longest_answer(int64_t source_tokens);

// How that type reads texts where nobody says: a classifier words, and a label a line; a Vision
// Transformer images; an encoder words; a language model characters, the same on both sides.
TextConfig default_text(const ModelConfig& model);

}  // namespace attend
