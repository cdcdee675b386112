#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attend/base/settings.h"
#include "attend/data/text_config.h"
#include "attend/models/classifier.h"
#include "attend/models/pair_network.h"
#include "attend/models/seq2seq.h"

namespace attend {

// What the network is, and the settings of each type.
struct ModelConfig {
  std::string type = "seq2seq";  // or "classifier"
  Seq2SeqConfig seq2seq;
  ClassifierConfig classifier;

  bool is_classifier() const { return type == "classifier"; }
  int64_t maximum_source_length() const;

  Setting type_setting();
  Settings settings();  // model.type, and the keys model.* of that type
};

// How that type reads texts where nobody says: a classifier words, and a label a line.
TextConfig default_text(const ModelConfig& model);

}  // namespace attend
