#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/import/export_translator-inl.h"
#include "attend/tokenizers/marian_tokenizer.h"

namespace attend::internal {
namespace {

// Describes the added tokens. Tokens with the last ids move from `ids` to added_tokens.json.
void add_pieces(const std::vector<AddedPiece>& added, Json& ids, ExportedFolder& made) {
  if (added.empty()) return;
  Json &config = made.documents["tokenizer_config.json"], special = Json::array(),
       own = Json::object();
  const auto describe = [&](std::string_view content, bool is_special) {
    const Json& id = ids[std::string(content)];
    config["added_tokens_decoder"][std::to_string(id.get<int64_t>())] = {
        {"content", content}, {"single_word", false},      {"lstrip", false},
        {"rstrip", false},    {"normalized", !is_special}, {"special", is_special}};
  };
  for (const std::string_view content :
       {MarianTokenizer::end, MarianTokenizer::unknown, MarianTokenizer::padding})
    describe(content, true);
  for (const AddedPiece& piece : added) {
    describe(piece.content, piece.is_special);
    if (piece.is_special) special.push_back(piece.content);
  }
  for (auto piece = added.rbegin(); piece != added.rend(); ++piece)
    if (ids[piece->content] == ids.size() - 1) {
      own[piece->content] = ids[piece->content];
      ids.erase(piece->content);
    }
  if (!special.empty()) config["additional_special_tokens"] = special;
  if (!own.empty()) made.documents["added_tokens.json"] = own;
}

}  // namespace

ExportedFolder exported_marian(const PairModel& model, const std::string& folder) {
  if (!holds_pieces(model.text.tokenizer) || !holds_pieces(model.text.target_tokenizer))
    fail(
        "{}: its texts are not split by source.spm and target.spm; translators that came from "
        "transformers are exported",
        folder);
  const std::vector<std::string> spelled = spelled_tokens(model.source_vocabulary);
  const int64_t unknown = id_of(spelled, MarianTokenizer::unknown, folder),
                padding = id_of(spelled, MarianTokenizer::padding, folder),
                end = id_of(spelled, MarianTokenizer::end, folder);
  ModelConfig whole = model.config;
  const auto& ours = whole.of<TransformerConfig>();
  ExportedFolder made{
      .architecture = "MarianMTModel",
      .config = translator_config("MarianMTModel", "marian", ours, std::ssize(spelled))};
  made.config.update({{"static_position_embeddings", true},
                      {"share_encoder_decoder_embeddings", true},
                      {"decoder_vocab_size", spelled.size()},
                      {"pad_token_id", padding},
                      {"decoder_start_token_id", padding},
                      {"eos_token_id", end}});
  made.again = read_again(made.config, read_marian);
  made.again.fixed->scores[Vocabulary::unknown] = made.again.fixed->rows[Vocabulary::unknown] =
      unknown;
  ExportedTokens tokens;
  Json ids = Json::object();
  for (const std::string& token : spelled) {
    tokens.vectors.push_back(first_own_token + std::ssize(tokens.vectors));
    ids[token] = tokens.vectors.size() - 1;
  }
  take_fixed_rows(model, tokens, made.again);
  if (tokens.separate) made.config["tie_word_embeddings"] = false;
  add_exported(model, tokens, made);
  made.documents["tokenizer_config.json"] = {
      {"tokenizer_class", "MarianTokenizer"},  {"model_max_length", model.maximum_source_length()},
      {"unk_token", MarianTokenizer::unknown}, {"eos_token", MarianTokenizer::end},
      {"pad_token", MarianTokenizer::padding}, {"separate_vocabs", false}};
  add_pieces(added_pieces(read_file(model.text.tokenizer), model.text.tokenizer), ids, made);
  made.documents["vocab.json"] = ids;
  add_translator_generation(model, std::nullopt, made);
  return made;
}

}  // namespace attend::internal
