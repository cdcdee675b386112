#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/base/settings.h"
#include "attend/models/mechanism_settings.h"
#include "attend/nn/trained_spec.h"

namespace attend {

// Score "none": no attention, one fixed context.
struct Seq2SeqConfig : MechanismSettings {
  Seq2SeqConfig() : MechanismSettings{.mechanism = "bahdanau"} {}

  std::string cell = "gru";
  std::string query = {};  // parts of query_part_table() joined by +; empty: the mechanism's own
  int64_t embedding = 128;
  int64_t hidden = 256;  // depth of the decoder state and of the annotations
  int64_t attention_depth = 256;
  int64_t encoder_layers = 1;
  double dropout = 0.1;
  double entropy_weight = 0;  // of hard attention
  int64_t maximum_source_length = 512;

  Settings settings();  // keys model.*

  bool attends() const { return score != "none"; }

  // The query's parts, in order. Error on an unknown one and on the same twice.
  std::vector<std::string> query_parts() const;

  // Depths of the query and the annotations.
  AttentionSizes attention_sizes() const;

  // Error, with the reason and what to take instead, when the settings describe no model: a
  // mechanism that a recurrent decoder cannot use, choices that do not go together, depths that
  // cannot be compared.
  void check() const;
};

// What the query of a recurrent decoder may consist of.
struct QueryPart {
  std::string_view name;
  std::string_view meaning;
};

const std::vector<QueryPart>& query_part_table();

}  // namespace attend
