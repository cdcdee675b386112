#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/import/config_keys-inl.h"
#include "attend/import/export-inl.h"
#include "attend/import/generation-inl.h"
#include "attend/models/transformer_config.h"
#include "attend/text/vocabulary.h"
#include "attend/tokenizers/marian_tokenizer.h"

namespace attend::internal {
namespace {

using at::Tensor;

constexpr int64_t first_own_token = Vocabulary::unknown + 1;

// Their tokens by id, spelled as in vocab.json.
std::vector<std::string> spelled_tokens(const Vocabulary& vocabulary) {
  std::vector<std::string> spelled;
  for (int64_t id = first_own_token; id < vocabulary.size(); ++id) {
    const std::string& name = vocabulary.token(id);
    const std::string inner = name.size() > 2 ? name.substr(1, name.size() - 2) : "";
    spelled.push_back(vocabulary_name(inner, 0) == name ? inner : name);
  }
  return spelled;
}

int64_t id_of(const std::vector<std::string>& tokens, std::string_view token,
              const std::string& folder) {
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  if (found == tokens.end())
    fail("{}: has no token {}, which translators of transformers have", folder, token);
  return found - tokens.begin();
}

// They have a single vector per token. Our fixed token has the same one until it is trained.
void check_fixed(const PairModel& model, const FixedTokens& fixed, const std::string& folder) {
  const Tensor vectors = model.network->named_parameters()["source_embedding.tokens.weight"];
  for (size_t id = 0; id < fixed.rows.size(); ++id)
    if (!vectors[static_cast<int64_t>(id)].equal(vectors[first_own_token + fixed.rows[id]]))
      fail(
          "{}: {} has different vectors in sources and in answers after training, and Marian has "
          "one; export a model without further training",
          folder, model.source_vocabulary.token(static_cast<int64_t>(id)));
}

Json config_of(const TransformerConfig& ours, int64_t tokens) {
  return {{"architectures", Json::array({"MarianMTModel"})},
          {"model_type", "marian"},
          {"is_encoder_decoder", true},
          {"d_model", ours.depth},
          {"encoder_layers", ours.encoder_layers},
          {"decoder_layers", ours.decoder_layers},
          {"num_hidden_layers", ours.encoder_layers},
          {"encoder_attention_heads", ours.heads},
          {"decoder_attention_heads", ours.heads},
          {"encoder_ffn_dim", ours.feed_forward},
          {"decoder_ffn_dim", ours.feed_forward},
          {"activation_function", activation_name(ours.activation)},
          {"dropout", ours.dropout},
          {"attention_dropout", ours.attention_dropout},
          {"activation_dropout", 0},
          {"max_position_embeddings", ours.maximum_source_length},
          {"scale_embedding", ours.scale_embedding},
          {"static_position_embeddings", true},
          {"share_encoder_decoder_embeddings", true},
          {"vocab_size", tokens},
          {"decoder_vocab_size", tokens}};
}

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
        "Marian are exported",
        folder);
  if (!model.codecs.source.tokenizer->languages().empty())
    fail("{}: it translates between chosen languages; such models are not exported", folder);
  const std::vector<std::string> spelled = spelled_tokens(model.source_vocabulary);
  const int64_t unknown = id_of(spelled, MarianTokenizer::unknown, folder),
                padding = id_of(spelled, MarianTokenizer::padding, folder),
                end = id_of(spelled, MarianTokenizer::end, folder);
  ModelConfig whole = model.config;
  ExportedFolder made{.architecture = "MarianMTModel",
                      .config = config_of(whole.of<TransformerConfig>(), std::ssize(spelled))};
  made.config["pad_token_id"] = made.config["decoder_start_token_id"] = padding;
  made.config["eos_token_id"] = end;
  made.again = read_again(made.config, read_marian);
  made.again.fixed->scores[Vocabulary::unknown] = made.again.fixed->rows[Vocabulary::unknown] =
      unknown;
  check_fixed(model, *made.again.fixed, folder);
  ExportedTokens tokens;
  Json ids = Json::object();
  for (const std::string& token : spelled) {
    tokens.vectors.push_back(first_own_token + std::ssize(tokens.vectors));
    ids[token] = tokens.vectors.size() - 1;
  }
  add_exported(model, tokens, made);
  made.documents["tokenizer_config.json"] = {
      {"tokenizer_class", "MarianTokenizer"},  {"model_max_length", model.maximum_source_length()},
      {"unk_token", MarianTokenizer::unknown}, {"eos_token", MarianTokenizer::end},
      {"pad_token", MarianTokenizer::padding}, {"separate_vocabs", false}};
  add_pieces(added_pieces(read_file(model.text.tokenizer), model.text.tokenizer), ids, made);
  made.documents["vocab.json"] = ids;
  Json& generation = made.documents["generation_config.json"];
  generation = exported_generation(model.decode, false, end);
  generation["pad_token_id"] = generation["decoder_start_token_id"] = padding;
  // Padding is never answered.
  generation["bad_words_ids"] = Json::array({Json::array({padding})});
  return made;
}

}  // namespace attend::internal
