#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/base/error.h"
#include "attend/import/encoder-inl.h"
#include "attend/import/text_pairs-inl.h"

namespace attend::internal {
namespace {

// Function of the output of a cross-encoder.
enum class HeadActivation { identity, sigmoid };
EnumNames names_of(HeadActivation) { return {"Identity", "Sigmoid"}; }

// The settings of a cross-encoder in either file of sentence-transformers.
struct CrossEncoder {
  std::optional<JsonFile> file;  // config_sentence_transformers.json
  bool is_named = false;
  std::optional<HeadActivation> activation = {};

  CrossEncoder(const std::string& folder, const JsonPosition& config)
      : file(find_json_file(folder + "/config_sentence_transformers.json")) {
    is_named = file && file->place().text("model_type", "") == "CrossEncoder";
    if (is_named) take(file->place(), activation_key);
    constexpr const char* older_key = "sbert_ce_default_activation_function";
    if (config.has(older_key)) take(config, older_key);
    if (config.has(cross_encoder_key)) take(config.member(cross_encoder_key), activation_key);
  }

 private:
  void take(const JsonPosition& place, const char* key) {
    is_named = true;
    if (activation || !place.has(key)) return;
    const std::string path = place.member(key).text();
    const std::string name = path.substr(path.rfind('.') + 1);
    for (const HeadActivation one : {HeadActivation::identity, HeadActivation::sigmoid})
      if (name == name_of(one)) activation = one;
    if (!activation)
      place.member(key).refuse("is {}, which is not read; Identity and Sigmoid are",
                               in_quotes(path));
  }
};

bool is_classifier(const ForeignModel& model) {
  return model.config.type == type_of(EncoderHead::labels);
}

bool is_reader(const ForeignModel& model) { return model.target == TargetKind::span; }

// Whether transformers passes types of tokens to the model; empty if its versions 4 and 5 differ.
std::optional<bool> passes_types(const TokenizerSettings& settings) {
  if (!settings.config) return true;
  const JsonPosition config = settings.config->place();
  if (config.has(inputs_key)) {
    const std::vector<JsonPosition> inputs = config.member(inputs_key).list();
    return std::any_of(inputs.begin(), inputs.end(),
                       [](const JsonPosition& input) { return input.text() == types_input; });
  }
  const std::string name = config.text("tokenizer_class", "BertTokenizer");
  for (const auto& [begin, passes] : {std::pair{"Bert", true},
                                      {"DistilBert", false},
                                      {"Electra", true},
                                      {"MPNet", false},
                                      {"Roberta", false},
                                      {"XLMRoberta", false},
                                      {"Camembert", false},
                                      {"TokenizersBackend", false}})
    if (name.starts_with(begin)) return passes;
  return std::nullopt;
}

// Why the tokenizer cannot join two texts; empty if it can.
std::string form_problem(const TextTokenizer& tokenizer) {
  try {
    tokenizer.pair_margins();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Keeps the vectors of token types if pairs have them. Returns why pairs cannot be read; empty if
// they can.
std::string take_types(const JsonPosition& config, const TokenizerSettings& settings,
                       const TextTokenizer& tokenizer, ForeignModel& model) {
  if (std::string problem = form_problem(tokenizer); !problem.empty()) return problem;
  const PairTypes types = tokenizer.pair_types();
  const std::optional<bool> passed = passes_types(settings);
  if (types == PairTypes::same || (passed && !*passed)) return "";
  if (!passed)
    return fmt::format(
        "versions 4 and 5 of transformers give their tokens different types; write {} with or "
        "without {} into tokenizer_config.json",
        inputs_key, types_input);
  if (types == PairTypes::other || config.number("type_vocab_size", 2) != 2)
    return "the tokenizer does not give the texts the two types of type_vocab_size";
  keep_token_types(model);
  return "";
}

}  // namespace

TextLayer read_cross_encoder(const std::string& folder, const JsonPosition& config,
                             const ForeignModel& model) {
  TextLayer layer;
  const CrossEncoder cross(folder, config);
  if (!cross.is_named) return layer;
  if (!is_classifier(model))
    config.refuse("is a cross-encoder, which scores pairs of texts, and {} gives no labels",
                  model.architecture);
  // Without modules.json, sentence-transformers ignores the file with the prompts.
  if (cross.file && std::filesystem::exists(folder + "/modules.json"))
    read_prompts(cross.file->place(), layer.prompts, layer.default_prompt);
  read_text_settings(folder, "sequence-classification", layer);
  return layer;
}

void read_pairs(const std::string& folder, const JsonPosition& config,
                const TokenizerSettings& settings, const TextTokenizer& tokenizer,
                ForeignModel& model) {
  if (!is_classifier(model) && !is_reader(model)) return;
  find_encoder(model.config)->side_vectors = false;
  const CrossEncoder cross(folder, config);
  // The activation that sentence-transformers uses if the files name none.
  const bool is_number = model.target == TargetKind::number;
  const auto usual = is_number ? HeadActivation::sigmoid : HeadActivation::identity;
  const bool is_sigmoid =
      cross.is_named && cross.activation.value_or(usual) == HeadActivation::sigmoid;
  if (is_sigmoid) model.target = is_number ? TargetKind::probability : TargetKind::labels;
  const bool reads_only_pairs = cross.is_named || is_reader(model);
  model.pairs = reads_only_pairs ? PairTexts::always : PairTexts::optional;
  const bool has_types =
      std::any_of(model.tensors.begin(), model.tensors.end(),
                  [](const TensorRow& row) { return row.use == TensorUse::first_row_added; });
  const std::string reason =
      has_types ? take_types(config, settings, tokenizer, model) : form_problem(tokenizer);
  if (reason.empty()) return;
  if (reads_only_pairs)
    config.refuse("is {}, which reads pairs of texts, and {}",
                  is_reader(model) ? model.architecture : "a cross-encoder", reason);
  model.pairs = PairTexts::never;
  model.notes.push_back(fmt::format("{}: pairs of texts are not read, because {}", folder, reason));
}

void keep_token_types(ForeignModel& model) {
  find_encoder(model.config)->side_vectors = true;
  for (TensorRow& row : model.tensors)
    if (row.use == TensorUse::first_row_added)
      row = {.theirs = row.theirs, .ours = side_vectors_name};
}

}  // namespace attend::internal
