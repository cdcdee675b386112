#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/import/export_translator-inl.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/tokenizers/marian_tokenizer.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend::internal {
namespace {

// A class of translators between languages.
struct LanguageExport {
  const char *architecture, *type;
  ForeignModel (*read)(const JsonPosition& config);
};

// Tokens by id, and the ids of the special ones.
struct LanguageTokens {
  std::vector<std::string> spelled;
  std::vector<std::string> languages = {};  // their tokens, by id
  ExportedTokens rows = {};
  int64_t padding = 0, end = 0;
  std::optional<int64_t> unknown = {}, first = {};  // first: the usual language of answers
};

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

LanguageTokens language_tokens(const PairModel& model, const std::string& folder) {
  const std::optional<TextTokenizer>& tokenizer = model.codecs.source.tokenizer;
  if (!tokenizer || tokenizer->languages().empty() || !model.codecs.target.tokenizer)
    fail("{}: no tokens mark its languages; translators that came from transformers are exported",
         folder);
  LanguageTokens tokens{spelled_tokens(model.source_vocabulary)};
  for (size_t id = 0; id < tokens.spelled.size(); ++id)
    tokens.rows.vectors.push_back(first_own_token + static_cast<int64_t>(id));
  tokens.rows.biases = tokens.rows.vectors;
  tokens.padding = id_of(tokens.spelled, MarianTokenizer::padding, folder);
  // Pieces without an id are unknown, and the fixed token has their vector.
  if (holds_pieces(model.text.tokenizer))
    tokens.unknown = id_of(tokens.spelled, MarianTokenizer::unknown, folder);
  std::set<int64_t> others;
  if (tokens.unknown) others.insert(*tokens.unknown);
  tokens.end = end_of_answers(model, others, folder);
  std::vector<std::string> marks;
  for (const std::string& language : tokenizer->languages())
    marks.push_back(tokenizer->in_language(language).language_token());
  std::copy_if(tokens.spelled.begin(), tokens.spelled.end(), std::back_inserter(tokens.languages),
               [&](const std::string& token) { return contains(marks, token); });
  if (tokens.languages.size() != marks.size())
    fail("{}: its vocabulary lacks the tokens of {} languages; import the model anew", folder,
         marks.size() - tokens.languages.size());
  if (const std::string& usual = model.text.target_language; !usual.empty())
    tokens.first = id_of(tokens.spelled, tokenizer->in_language(usual).language_token(), folder);
  return tokens;
}

// The class of tokenizers with these languages.
LanguageTokenizer class_of(const PairModel& model, const LanguageTokens& tokens,
                           const ForeignModel& again, const std::string& folder) {
  const bool starts_answers = model.codecs.target.tokenizer->languages().empty();
  for (const LanguageTokenizer& row : again.languages)
    if (row.has_ids == tokens.unknown.has_value() && row.starts_answers == starts_answers &&
        std::none_of(tokens.languages.begin(), tokens.languages.end(),
                     [&](const std::string& token) { return language_of(token, row).empty(); }))
      return row;
  fail("{}: no tokenizer of {} marks languages as {}", folder, again.architecture,
       tokens.languages.empty() ? "" : tokens.languages[0]);
}

// Whether a tokenizer.json puts the language after a text, as older versions of NLLB's do.
bool is_language_last(const PairModel& model, const LanguageTokens& tokens) {
  if (holds_pieces(model.text.tokenizer)) return false;
  const Json whole = parse_json(read_file(model.text.tokenizer), model.text.tokenizer);
  const auto around = tokens_around(whole.value("post_processor", Json()));
  return !contains(tokens.languages, around.first) && contains(tokens.languages, around.second);
}

// Adds tokenizer_config.json.
void add_language_config(const PairModel& model, const LanguageTokens& tokens,
                         ExportedFolder& made) {
  Json& config = made.documents["tokenizer_config.json"];
  const LanguageTokenizer& row = made.again.languages.front();
  config = {{"tokenizer_class", row.name},
            {"model_max_length", model.maximum_source_length()},
            {"src_lang", model.text.source_language},
            {"additional_special_tokens", tokens.languages}};
  if (tokens.first) config["tgt_lang"] = model.text.target_language;
  if (!row.starts_answers && is_language_last(model, tokens)) config["legacy_behaviour"] = true;
  const auto spelled = [&](int64_t id) { return tokens.spelled[static_cast<size_t>(id)]; };
  for (const char* key : {"eos_token", "sep_token"}) config[key] = spelled(tokens.end);
  config["pad_token"] = spelled(tokens.padding);
  // Names that the classes use without these keys; null: the tokenizer lacks the token.
  for (const auto& [key, token] : {std::pair{"bos_token", "<s>"},
                                   {"cls_token", "<s>"},
                                   {"unk_token", "<unk>"},
                                   {"mask_token", "<mask>"}})
    config[key] = contains(tokens.spelled, token) ? Json(token) : Json();
}

// Adds vocab.json: tokens with ids before the languages. Error on added tokens with later ids.
void add_language_ids(const PairModel& model, const LanguageTokens& tokens, ExportedFolder& made) {
  if (!tokens.unknown) return;
  made.pieces = "sentencepiece.bpe.model";
  Json& ids = made.documents["vocab.json"];
  for (size_t id = 0; id < tokens.spelled.size(); ++id)
    if (const std::string& token = tokens.spelled[id];
        token != name_by_id(static_cast<int32_t>(id)) && !contains(tokens.languages, token))
      ids[token] = id;
  const std::string& path = model.text.tokenizer;
  const int64_t end = id_of(tokens.spelled, tokens.languages.at(0), path);
  Json& special = made.documents["tokenizer_config.json"]["additional_special_tokens"];
  for (const AddedPiece& piece : added_pieces(read_file(path), path)) {
    if (!piece.language.empty()) continue;
    if (!piece.is_special || id_of(tokens.spelled, piece.content, path) >= end)
      fail(
          "{}: the added token {} marks no language and is not special or not in vocab.json; such "
          "models are not exported",
          path, in_quotes(piece.content));
    special.push_back(piece.content);
  }
}

ExportedFolder exported_languages(const PairModel& model, const std::string& folder,
                                  const LanguageExport& row) {
  LanguageTokens tokens = language_tokens(model, folder);
  ModelConfig whole = model.config;
  const auto& ours = whole.of<TransformerConfig>();
  ExportedFolder made{
      .architecture = row.architecture,
      .config = translator_config(row.architecture, row.type, ours, std::ssize(tokens.spelled))};
  made.config["pad_token_id"] = tokens.padding;
  made.config["eos_token_id"] = tokens.end;
  std::vector<int64_t> starts = {tokens.end, tokens.padding};
  if (contains(tokens.spelled, "<s>")) {
    made.config["bos_token_id"] = id_of(tokens.spelled, "<s>", folder);
    starts.push_back(made.config["bos_token_id"]);
  }
  for (const std::string& token : tokens.languages)
    starts.push_back(id_of(tokens.spelled, token, folder));
  made.config["decoder_start_token_id"] = begin_of_answers(model, starts);
  made.again = read_again(made.config, row.read);
  made.again.languages = {class_of(model, tokens, made.again, folder)};
  if (tokens.unknown)
    made.again.fixed->scores[Vocabulary::unknown] = made.again.fixed->rows[Vocabulary::unknown] =
        *tokens.unknown;
  take_fixed_rows(model, tokens.rows, made.again);
  if (tokens.rows.separate) made.config["tie_word_embeddings"] = false;
  add_exported(model, tokens.rows, made);
  add_language_config(model, tokens, made);
  add_language_ids(model, tokens, made);
  add_translator_generation(model, tokens.first, made);
  return made;
}

}  // namespace

ExportedFolder exported_m2m100(const PairModel& model, const std::string& folder) {
  return exported_languages(model, folder,
                            {"M2M100ForConditionalGeneration", "m2m_100", read_m2m100});
}

ExportedFolder exported_mbart(const PairModel& model, const std::string& folder) {
  return exported_languages(model, folder, {"MBartForConditionalGeneration", "mbart", read_mbart});
}

}  // namespace attend::internal
