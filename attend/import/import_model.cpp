#include "attend/import/import_model.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/import/conversion-inl.h"
#include "attend/import/encoder-inl.h"
#include "attend/import/foreign_file-inl.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/import/generation-inl.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/import/image_processor-inl.h"
#include "attend/import/model_class-inl.h"
#include "attend/import/sentence_encoder-inl.h"
#include "attend/import/text_pairs-inl.h"
#include "attend/models/model_folder.h"
#include "attend/models/model_size.h"

namespace attend {
namespace internal {

const std::vector<ForeignType>& foreign_types() {
  static const std::vector<ForeignType> table = {
      {"bert", read_bert, bert_classes, {"bert.embeddings.word_embeddings.weight"}},
      {"distilbert",
       read_distilbert,
       distilbert_classes,
       {"distilbert.transformer.layer.0.attention.q_lin.weight",
        "transformer.layer.0.attention.q_lin.weight"}},
      {"electra", read_electra, electra_classes, {"electra.embeddings.word_embeddings.weight"}},
      {"albert",
       read_albert,
       albert_classes,
       {"albert.embeddings.word_embeddings.weight",
        "encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"}},
      {"mpnet",
       read_mpnet,
       mpnet_classes,
       {"mpnet.embeddings.word_embeddings.weight", "encoder.layer.0.attention.attn.q.weight"}},
      {"roberta", read_roberta, roberta_classes, {"roberta.embeddings.word_embeddings.weight"}},
      {"xlm-roberta", read_xlm_roberta, roberta_classes},
      {"camembert", read_camembert, roberta_classes},
      {"vit", read_vit, vit_classes, {"vit.embeddings.cls_token"}},
      {"deit", read_deit, deit_classes, {"deit.embeddings.distillation_token"}},
      {"gpt2", read_gpt2, gpt2_classes, {"wte.weight", "transformer.wte.weight"}, true},
      {"modernbert",
       read_modernbert,
       modernbert_classes,
       {"embeddings.tok_embeddings.weight", "model.embeddings.tok_embeddings.weight"}},
      {"esm", read_esm, esm_classes, {"esm.embeddings.word_embeddings.weight"}},
      {"deberta-v2",
       read_deberta,
       deberta_classes,
       {"deberta.encoder.layer.0.attention.self.query_proj.weight"}},
      {"marian", read_marian, marian_classes, {}, true, {"bart"}},
      {"m2m_100", read_m2m100, m2m100_classes, {}, true},
      {"mbart", read_mbart, mbart_classes, {"model.encoder.layernorm_embedding.weight"}, true},
      {"t5", read_t5, t5_classes, {"encoder.block.0.layer.0.SelfAttention.q.weight"}, true},
      {"mt5", read_mt5, mt5_classes, {}, true}};
  return table;
}

namespace {

// Names of their tokens by id, including ids after the tokenizer's. The mask gets a name that
// occurs in no text, so that it is encoded as unknown.
std::vector<std::string> token_names(const ForeignTokenizer& tokenizer, int64_t tokens) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(tokens));
  for (int32_t id = 0; id < tokens; ++id)
    names.push_back(id == tokenizer.mask ? fmt::format("<token:{}>", id) : tokenizer.name(id));
  return names;
}

// The settings and vocabularies of the new folder.
PairModel description_of_images(const ForeignModel& foreign, const std::string& folder) {
  PairModel model;
  model.config = foreign.config;
  model.text = model.config.row().text;
  model.text.frames = foreign.images->frames;
  model.target_vocabulary = in_order(foreign.labels, folder);
  check_copies(model, import_copies, "import");
  return model;
}

PairModel description_of_texts(const ForeignModel& foreign, const ForeignTokenizer& tokenizer,
                               const std::string& folder) {
  PairModel model;
  model.config = foreign.config;
  model.decode = foreign.decode;
  model.text = model.config.row().text;
  model.text.source_units = tokenizer_units;
  // Answers use the tokens of sources.
  const bool is_one = model.config.row().answers->is_text() || tokenizer.target;
  // Error if the decoder of the tokenizer is not supported.
  if (is_one) tokenizer.tokenizer.join({});
  if (is_one) model.text.target_units = tokenizer_units;
  model.text.joint_vocabulary = tokenizer.target || model.text.joint_vocabulary;
  const bool has_pieces = !tokenizer.names.empty();
  model.text.tokenizer = has_pieces ? "source.spm" : "tokenizer.json";
  if (tokenizer.target)
    model.text.target_tokenizer = has_pieces ? "target.spm" : "target_tokenizer.json";
  model.text.source_language = tokenizer.source_language;
  if (foreign.first_token)
    model.text.target_language = language_of(tokenizer, *foreign.first_token);
  model.text.target = foreign.target;
  model.text.pairs = foreign.pairs;
  if (model.text.wants_numbers()) model.text.target_scale = {.mean = 0, .deviation = 1};
  if (tokenizer.size() > foreign.tokens)
    fail("{}: the tokenizer has {} tokens, and vocab_size of config.json is {}", folder,
         tokenizer.size(), foreign.tokens);
  if (model.config.row().answers->fills() && !tokenizer.mask)
    fail("{}: {} guesses masked words, and tokenizer_config.json names no mask_token", folder,
         foreign.architecture);
  model.source_vocabulary = in_order(token_names(tokenizer, foreign.tokens), folder);
  model.target_vocabulary = is_one ? model.source_vocabulary : in_order(foreign.labels, folder);
  check_copies(model, import_copies, "import");
  return model;
}

// If the type does not set them, all get the mask's vector. The tokenizer may set unknown; no text
// contains the others.
FixedTokens fixed_of(const ForeignModel& foreign, const ForeignTokenizer& tokenizer) {
  FixedTokens fixed;
  fixed.rows.fill(tokenizer.mask.value_or(0));
  if (foreign.fixed) fixed = *foreign.fixed;
  if (tokenizer.unknown)
    fixed.scores[Vocabulary::unknown] = fixed.rows[Vocabulary::unknown] = *tokenizer.unknown;
  return fixed;
}

ForeignTokenizer read_tokenizer(const ForeignModel& foreign, const TokenizerSettings& settings,
                                const std::string& folder) {
  if (foreign.tokenizer == TokenizerFiles::sides) return read_side_tokenizers(folder, settings);
  if (settings.languages != nullptr && settings.languages->has_ids)
    return read_language_pieces(folder, settings);
  ForeignTokenizer tokenizer = read_foreign_tokenizer(folder, settings, foreign.older);
  // A network ends answers itself.
  if (foreign.config.chosen().wants_joint_vocabulary())
    tokenizer.target = tokenizer.target.value_or(tokenizer.tokenizer).without_special_tokens();
  return tokenizer;
}

// Error unless the tokenizer pads with the token that is not counted in positions. Texts could
// contain another one.
void check_padding(const ForeignModel& foreign, const TokenizerSettings& settings,
                   const ForeignTokenizer& tokenizer, const std::string& folder) {
  const auto padding = static_cast<int32_t>(foreign.first_position - 1);
  if (padding < 0 || padding >= tokenizer.size()) return;
  const std::string name = tokenizer.name(padding), named = special_token(settings, "pad_token");
  const auto is = [&](const std::string& token) { return name == vocabulary_name(token, padding); };
  if (named.empty() ? is("<pad>") || is("[PAD]") : is(named)) return;
  fail("{}: positions leave out token {}, {}, which texts may contain; such models are not read",
       folder, padding, in_quotes(name));
}

// Default mask of the class of a type, for folders that name none.
std::optional<int32_t> usual_mask(const ForeignTokenizer& tokenizer, const std::string& mask) {
  if (mask.empty()) return std::nullopt;
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.name(id) == mask) return id;
  return std::nullopt;
}

// Accepts what a killed import leaves: config.toml is written last.
FolderLock take_new(const std::string& out) {
  return take_unused(out, {"tokenizer.json", "target_tokenizer.json", "source.spm", "target.spm",
                           "weights.safetensors", "source.vocab", "target.vocab"});
}

// Writes the folder, config.toml last.
ImportedModel written(const std::string& architecture, PairModel& model,
                      const ForeignTokenizer* tokenizer, const TensorFile& weights,
                      const Notes& notes, const std::string& out) {
  const TextConfig stored = with_codes_in(out, model.text);
  if (tokenizer != nullptr) tokenizer->tokenizer.save(stored.tokenizer);
  if (tokenizer != nullptr && tokenizer->target) tokenizer->target->save(stored.target_tokenizer);
  write_safetensors(out + "/weights.safetensors", weights);
  model.codecs = make_codecs(stored);
  save_description(model, out);
  ImportedModel result{.architecture = architecture, .type = model.config.type, .notes = notes};
  if (tokenizer != nullptr) result.tokens = tokenizer->size();
  for (const auto& [name, tensor] : weights.tensors) result.weights += tensor.numel();
  return result;
}

// Leaves the folder's own row of the tokenizers. Error if the start of its answers is not known.
void choose_language_tokenizer(const TokenizerSettings& settings, const JsonPosition& config,
                               ForeignModel& model) {
  model.languages = {language_tokenizer(settings, config, model.languages)};
  const LanguageTokenizer& row = model.languages.front();
  if (row.starts_answers && !config.has("decoder_start_token_id"))
    fail(
        "{}: has no decoder_start_token_id, and answers of {} begin with the token of their "
        "language; add its number",
        config.file(), row.name);
}

// Finds the type and reads config.json and, if the model answers with texts,
// generation_config.json. `tensors` are read if they settle the type or a setting, and `settings`
// if they settle the languages.
ForeignModel read_model(const std::string& folder, JsonFile& config,
                        std::optional<TensorFile>& tensors,
                        std::optional<TokenizerSettings>& settings,
                        std::vector<ForeignClass>& classes) {
  Notes notes;
  const ForeignType& type = find_foreign_type(folder, config, tensors, notes);
  classes = type.classes();
  std::optional<JsonFile> generation;
  if (type.answers_texts) generation = find_json_file(folder + "/generation_config.json");
  take_generation_tokens(generation, config);
  ForeignModel model = type.read(config.place());
  model.notes.insert(model.notes.begin(), notes.begin(), notes.end());
  if (!model.languages.empty()) {
    settings = read_tokenizer_settings(folder);
    choose_language_tokenizer(*settings, config.place(), model);
  }
  if (type.answers_texts && model.config.row().answers->has_answers())
    read_generation(generation ? generation->place() : config.place(), generation.has_value(),
                    model);
  if (model.complete != nullptr) {
    if (!tensors) tensors = read_foreign_tensors(folder);
    model.complete(*tensors, model);
  }
  return model;
}

struct FileReader {
  const char *suffix, *architecture;
  ForeignFile (*read)(const std::string& path);
};

// The reader for a file by its name; nothing for a folder.
std::optional<FileReader> file_reader(const std::string& path) {
  for (const FileReader& row :
       {FileReader{".npz", "g2p-en", read_pronouncer}, {".keras", "Keras", read_keras_model}})
    if (has_suffix(path, row.suffix)) return row;
  return std::nullopt;
}

ImportedModel written(const FileReader& file, ForeignFile read, const std::string& out) {
  const ForeignTokenizer tokenizer{std::move(read.tokenizer)};
  return written(file.architecture, read.model, &tokenizer, read.weights, {}, out);
}

}  // namespace
}  // namespace internal

ImportedModel import_model(const std::string& folder, const std::string& out) {
  using namespace internal;
  std::optional<FolderLock> lock;
  // A missing folder is made after everything is read.
  if (std::filesystem::exists(out)) lock.emplace(take_new(out));
  if (const auto file = file_reader(folder)) {
    ForeignFile read = file->read(folder);
    if (!lock) lock.emplace(take_new(out));
    return written(*file, std::move(read), out);
  }
  JsonFile config = read_foreign_config(folder);
  std::optional<TensorFile> tensors;
  std::optional<TokenizerSettings> known;
  std::vector<ForeignClass> classes;
  ForeignModel foreign = read_model(folder, config, tensors, known, classes);
  std::optional<ForeignTokenizer> tokenizer;
  PairModel model;
  FixedTokens fixed;
  TextLayer layer;
  if (foreign.images) {
    read_image_processor(folder, *foreign.images, foreign.notes);
    model = description_of_images(foreign, folder);
  } else {
    TokenizerSettings settings = known ? std::move(*known) : read_tokenizer_settings(folder);
    std::optional<int64_t> longest = longest_text(settings);
    if (!foreign.config.row().answers->has_answers()) {
      layer = read_sentence_encoder(folder, foreign.config.of<EmbedderConfig>());
    } else {
      layer = read_cross_encoder(folder, config.place(), foreign);
    }
    settings.lowercase = layer.lowercase;
    if (!foreign.languages.empty()) settings.languages = &foreign.languages.front();
    if (layer.longest) longest = layer.longest;
    if (longest) limit_source(*longest, foreign.config);
    foreign.tensors.insert(foreign.tensors.end(), layer.rows.begin(), layer.rows.end());
    tokenizer.emplace(read_tokenizer(foreign, settings, folder));
    check_padding(foreign, settings, *tokenizer, folder);
    if (!tokenizer->mask) tokenizer->mask = usual_mask(*tokenizer, foreign.older.special.mask);
    // A translator reads its mask as any token.
    if (settings.languages != nullptr) tokenizer->mask.reset();
    read_pairs(folder, config.place(), settings, tokenizer->tokenizer, foreign);
    model = description_of_texts(foreign, *tokenizer, folder);
    model.text.prompts = layer.prompts;
    model.text.default_prompt = layer.default_prompt;
    if (foreign.first_token && model.text.target_language.empty())
      foreign.notes.push_back(
          fmt::format("{}: forced_bos_token_id = {} marks no language and is not supported", folder,
                      *foreign.first_token));
    fixed = fixed_of(foreign, *tokenizer);
  }
  if (!tensors) tensors = read_foreign_tensors(folder);
  rename_norms(*tensors);
  tensors->tensors.merge(layer.file.tensors);
  const TensorFile weights =
      converted(foreign, *tensors, model, fixed, classes, folder, foreign.notes);
  if (!lock) lock.emplace(take_new(out));
  return written(foreign.architecture, model, tokenizer ? &*tokenizer : nullptr, weights,
                 foreign.notes, out);
}

}  // namespace attend
