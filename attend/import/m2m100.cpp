#include "attend/import/translator_layers-inl.h"

namespace attend::internal {
namespace {

using Use = TensorUse;

struct LanguageArchitecture {
  std::string name;
};

const std::vector<LanguageArchitecture>& m2m100_architectures() {
  static const std::vector<LanguageArchitecture> table = {{"M2M100ForConditionalGeneration"}};
  return table;
}

const std::vector<LanguageArchitecture>& mbart_architectures() {
  static const std::vector<LanguageArchitecture> table = {{"MBartForConditionalGeneration"}};
  return table;
}

// Tokens of the languages of transformers' M2M100Tokenizer, in the order of their ids.
std::vector<std::string> m2m100_tokens() {
  std::vector<std::string> tokens;
  for (const char* language :
       {"af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br",  "bs", "ca", "ceb", "cs", "cy",
        "da", "de", "el", "en",  "es", "et", "fa", "ff", "fi", "fr",  "fy", "ga", "gd",  "gl", "gu",
        "ha", "he", "hi", "hr",  "ht", "hu", "hy", "id", "ig", "ilo", "is", "it", "ja",  "jv", "ka",
        "kk", "km", "kn", "ko",  "lb", "lg", "ln", "lo", "lt", "lv",  "mg", "mk", "ml",  "mn", "mr",
        "ms", "my", "ne", "nl",  "no", "ns", "oc", "or", "pa", "pl",  "ps", "pt", "ro",  "ru", "sd",
        "si", "sk", "sl", "so",  "sq", "sr", "ss", "su", "sv", "sw",  "ta", "th", "tl",  "tn", "tr",
        "uk", "ur", "uz", "vi",  "wo", "xh", "yi", "yo", "zh", "zu"})
    tokens.push_back(fmt::format("__{}__", language));
  return tokens;
}

const std::vector<LanguageTokenizer>& m2m100_tokenizers() {
  static const std::vector<LanguageTokenizer> table = {
      {.name = "NllbTokenizer", .forms = {"xxx_Xxxx"}, .usual = "eng_Latn"},
      {.name = "M2M100Tokenizer",
       .forms = {"__xx__", "__xxx__"},
       .usual = "en",
       .tokens = m2m100_tokens(),
       .has_ids = true}};
  return table;
}

// Tokens of the languages of mBART-50, in the order of their ids; mBART has the first 25.
std::vector<std::string> mbart_tokens(size_t count) {
  std::vector<std::string> tokens = {
      "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN",
      "hi_IN", "it_IT", "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP",
      "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN", "af_ZA", "az_AZ",
      "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH", "mk_MK", "ml_IN",
      "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN", "te_IN",
      "th_TH", "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"};
  tokens.resize(count);
  return tokens;
}

const std::vector<LanguageTokenizer>& mbart_tokenizers() {
  static const std::vector<LanguageTokenizer> table = {{.name = "MBartTokenizer",
                                                        .forms = {"xx_XX"},
                                                        .usual = "en_XX",
                                                        .tokens = mbart_tokens(25),
                                                        .starts_answers = true},
                                                       {.name = "MBart50Tokenizer",
                                                        .forms = {"xx_XX"},
                                                        .usual = "en_XX",
                                                        .tokens = mbart_tokens(52),
                                                        .keeps_spaces = true}};
  return table;
}

const std::vector<ConfigKey>& language_keys() {
  static const std::vector<ConfigKey> table =
      with_translator_keys({{"static_position_embeddings", "false"},
                            {"normalize_before", "true"},
                            {"normalize_embedding", "true"},
                            {"add_final_layer_norm", "true"},
                            {"is_decoder", "false"},
                            {"output_past"}});
  return table;
}

// Both types normalise the input of each sublayer and the output of each stack.
ForeignModel read_language_translator(const JsonPosition& config,
                                      const std::vector<LanguageArchitecture>& classes,
                                      const char* activation) {
  ForeignModel model;
  check_values(config, language_keys(), model.notes);
  model.architecture = architecture_in(config, classes).name;
  model.config.type = "transformer";
  auto& ours = model.config.of<TransformerConfig>();
  read_translator_layers(config, activation, ours);
  ours.normalise_first = true;
  model.prefix = "model.";
  model.tensors = translator_tensors(ours);
  for (const char* stack : {"encoder", "decoder"})
    add_translator_part(fmt::format("{}.layer_norm", stack), fmt::format("{}.norm", stack),
                        model.tensors);
  model.layers = ours.encoder_layers;
  read_translator_tokens(config, "eos_token_id", model);
  return model;
}

}  // namespace

std::vector<ForeignClass> m2m100_classes() { return {{.name = m2m100_architectures()[0].name}}; }

std::vector<ForeignClass> mbart_classes() { return {{.name = mbart_architectures()[0].name}}; }

// M2M100 (Fan et al. 2021) and NLLB-200 (NLLB Team 2022). Positions are sinusoids of fairseq.
ForeignModel read_m2m100(const JsonPosition& config) {
  ForeignModel model = read_language_translator(config, m2m100_architectures(), "relu");
  auto& ours = model.config.of<TransformerConfig>();
  ours.positions = Positions::sinusoidal_fairseq;
  ours.scale_embedding = config.flag("scale_embedding", true);
  if (ours.depth < 4 || ours.depth % 2 != 0)
    config.member("d_model").refuse("is {}; an even number from 4 is read", ours.depth);
  // The first position follows the number of the padding token.
  if (model.fixed->rows[0] != 1)
    config.member("pad_token_id")
        .refuse("is {}, and positions begin after it; only 1 is read", model.fixed->rows[0]);
  // Older files hold the computed sinusoids.
  for (const char* stack : {"encoder", "decoder"})
    model.tensors.push_back({fmt::format("{}.embed_positions.weights", stack), {}, Use::unused});
  add_translator_output({"", "output_bias", Use::token_biases}, model);
  ours.fixed_output_bias = true;
  model.languages = m2m100_tokenizers();
  return model;
}

// mBART (Liu et al. 2020) and mBART-50 (Tang et al. 2020). Each stack has learned positions and a
// norm of its input.
ForeignModel read_mbart(const JsonPosition& config) {
  ForeignModel model = read_language_translator(config, mbart_architectures(), "gelu");
  auto& ours = model.config.of<TransformerConfig>();
  ours.positions = Positions::learned;
  ours.scale_embedding = config.flag("scale_embedding", false);
  ours.normalise_input = ours.separate_positions = true;
  if (ours.maximum_source_length < 2)
    config.member("max_position_embeddings").refuse("is 1; 2 or more are read");
  ours.maximum_target_length = ours.maximum_source_length - 1;  // the start token has a position
  model.first_position = 2;
  model.positions = ours.maximum_source_length + model.first_position;
  for (const auto& [stack, embedding] :
       {std::pair{"encoder", "source_embedding"}, {"decoder", "target_embedding"}}) {
    model.tensors.push_back({fmt::format("{}.embed_positions.weight", stack),
                             fmt::format("{}.positions.table", embedding), Use::position_rows});
    add_translator_part(fmt::format("{}.layernorm_embedding", stack),
                        fmt::format("{}.norm", embedding), model.tensors);
  }
  add_translator_output({"final_logits_bias", "output_bias", Use::token_bias_row}, model);
  model.forces_end = true;
  model.languages = mbart_tokenizers();
  model.older = {.special = {"<unk>", "<s>", "</s>", "<pad>", "<mask>"},
                 .first_pieces = {"<s>", "<pad>", "</s>", "<unk>"},
                 .replaced_pieces = 3,
                 .pieces = "sentencepiece.bpe.model"};
  return model;
}

}  // namespace attend::internal
