#include "attend/import/translator_layers-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

struct MarianArchitecture {
  std::string name;
};

const std::vector<MarianArchitecture>& marian_architectures() {
  static const std::vector<MarianArchitecture> table = {{"MarianMTModel"}};
  return table;
}

const std::vector<ConfigKey>& marian_keys() {
  static const std::vector<ConfigKey> table =
      with_translator_keys({{"decoder_vocab_size"},
                            {"share_encoder_decoder_embeddings", "true"},
                            {"static_position_embeddings", "true"},
                            {"normalize_before", "false"},
                            {"normalize_embedding", "false"},
                            {"add_final_layer_norm", "false"}});
  return table;
}

std::vector<TensorRow> marian_tensors(const TransformerConfig& ours) {
  std::vector<TensorRow> rows = translator_tensors(ours);
  // Sinusoids are computed.
  rows.push_back({"encoder.embed_positions.weight", {}, Use::unused});
  rows.push_back({"decoder.embed_positions.weight", {}, Use::unused});
  return rows;
}

}  // namespace

std::vector<ForeignClass> marian_classes() { return {{.name = marian_architectures()[0].name}}; }

// Translators of Marian (Junczys-Dowmunt et al. 2018). Answers begin with the vector of padding,
// which takes part in the softmax but is never answered.
ForeignModel read_marian(const JsonPosition& config) {
  ForeignModel model;
  check_values(config, marian_keys(), model.notes);
  model.architecture = architecture_in(config, marian_architectures()).name;
  model.config.type = "transformer";
  auto& ours = model.config.of<TransformerConfig>();
  read_translator_layers(config, "gelu", ours);
  ours.positions = Positions::sinusoidal_halves;
  ours.normalise_first = false;
  ours.scale_embedding = config.flag("scale_embedding", false);
  model.prefix = "model.";
  model.tensors = marian_tensors(ours);
  add_translator_output({"final_logits_bias", "output_bias", Use::token_bias_row}, model);
  model.layers = ours.encoder_layers;
  // Files of 2020 lack decoder_start_token_id.
  read_translator_tokens(config, "pad_token_id", model);
  if (config.number("decoder_vocab_size", model.tokens) != model.tokens)
    config.member("decoder_vocab_size")
        .refuse("is not {}, as vocab_size is; models with two vocabularies are not read",
                model.tokens);
  model.positions = ours.maximum_source_length;
  model.tokenizer = TokenizerFiles::sides;
  model.forces_end = true;
  model.fixed->scores[0] = model.fixed->rows[0];
  return model;
}

}  // namespace attend::internal
