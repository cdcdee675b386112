#include "attend/tokenizers/vocabulary_files.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_set>
#include <utility>

#include "attend/base/base64.h"
#include "attend/base/error.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/read_parts-inl.h"
#include "attend/tokenizers/sentence_piece_model-inl.h"
#include "attend/tokenizers/splitter-inl.h"

namespace attend {
namespace {

using internal::TokenTable;

std::vector<std::string_view> lines_of(std::string_view bytes) {
  std::vector<std::string_view> lines;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    lines.push_back(bytes.substr(0, end));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return lines;
}

TokenTable words_of(std::string_view bytes, const std::string& file) {
  std::vector<std::string> words;
  std::unordered_set<std::string_view> met;
  for (const std::string_view line : lines_of(bytes)) {
    words.emplace_back(line);
    const size_t number = words.size();
    if (line.empty())
      fail("{}:{}: the line is empty and must have a token; fetch the file anew", file, number);
    if (!internal::is_well_formed(line))
      fail("{}:{}: {} is not UTF-8; save the file as UTF-8", file, number, in_quotes(line));
    if (!met.insert(line).second)
      fail("{}:{}: {} is there twice; fetch the file anew", file, number, in_quotes(line));
  }
  return {std::move(words), file};
}

// A mask replaces a word including the space before it, if texts have spaces.
Json entry_of(const std::string& content, bool strip_left) {
  return {{"content", content}, {"single_word", false}, {"lstrip", strip_left},
          {"rstrip", false},    {"normalized", false},  {"special", true}};
}

// Adds the token unless it is there; it is special in any case, although files of ByT5 deny it.
void make_special(Json& added, const std::string& content, bool strip_left) {
  const auto there = std::find_if(added.begin(), added.end(),
                                  [&](const Json& entry) { return entry["content"] == content; });
  if (there == added.end())
    added.push_back(entry_of(content, strip_left));
  else
    (*there)["special"] = true;
}

Json sorted_by_id(Json added) {
  std::stable_sort(added.begin(), added.end(),
                   [](const Json& one, const Json& other) { return one["id"] < other["id"]; });
  return added;
}

Json added_tokens(const OlderTokens& older, const TokenTable& tokens, bool strip_mask,
                  const std::string& file) {
  Json added = older.added;
  const SpecialTokenNames& special = older.special;
  for (const std::string* content :
       {&special.unknown, &special.begin, &special.end, &special.padding, &special.mask})
    if (!content->empty()) make_special(added, *content, strip_mask && content == &special.mask);
  for (Json& entry : added) {
    const std::string content = entry["content"];
    if (const std::optional<int32_t> id = tokens.id(content))
      entry["id"] = *id;
    else if (!entry.contains("id"))
      fail("{}: has no special token {}; name the existing ones in tokenizer_config.json", file,
           in_quotes(content));
  }
  return sorted_by_id(std::move(added));
}

// Adds the other tokens of the vocabulary, so that texts are split at them.
Json with_all(Json added, const TokenTable& tokens) {
  std::set<int32_t> there;
  for (const Json& entry : added) there.insert(entry["id"].get<int32_t>());
  for (int32_t id = 0; id < tokens.size(); ++id) {
    if (there.contains(id)) continue;
    Json entry = entry_of(tokens.token(id), /*strip_left=*/false);
    entry["id"] = id;
    entry["special"] = false;
    added.push_back(std::move(entry));
  }
  return sorted_by_id(std::move(added));
}

OlderTokens with_special(OlderTokens tokens, const std::vector<std::string>& more) {
  for (const std::string& content : more) make_special(tokens.added, content, false);
  return tokens;
}

// [token, id]
Json with_id(const std::string& token, const Json& added) {
  for (const Json& entry : added)
    if (entry["content"] == token) return {token, entry["id"]};
  return nullptr;
}

Json ids_of(const TokenTable& tokens) {
  Json ids = Json::object();
  for (int32_t id = 0; id < tokens.size(); ++id) ids[tokens.token(id)] = id;
  return ids;
}

Json merges_of(std::string_view bytes, const std::string& file, const TokenTable& tokens) {
  constexpr std::string_view version = "#version";
  Json merges = Json::array();
  size_t number = 0;
  for (const std::string_view line : lines_of(bytes)) {
    ++number;
    if (line.starts_with(version)) continue;
    try {
      const internal::TokenMerge merge = internal::merge_of(line, tokens, "");
      merges.push_back({tokens.token(merge.left), tokens.token(merge.right)});
    } catch (const Error& error) {
      fail("{}:{}: {}", file, number, error.what());
    }
  }
  return merges;
}

Json word_pieces(const SpecialTokenNames& special, const TokenTable& tokens) {
  return {{"type", "WordPiece"},
          {"unk_token", special.unknown},
          {"continuing_subword_prefix", internal::continuation_prefix},
          {"max_input_chars_per_word", 100},
          {"vocab", ids_of(tokens)}};
}

Json bert_sequence(const SpecialTokenNames& special, const Json& added) {
  return {{"type", "BertProcessing"},
          {"sep", with_id(special.end, added)},
          {"cls", with_id(special.begin, added)}};
}

Json roberta_sequence(const SpecialTokenNames& special, const Json& added, bool prefix_space) {
  return {{"type", "RobertaProcessing"},
          {"cls", with_id(special.begin, added)},
          {"sep", with_id(special.end, added)},
          {"trim_offsets", true},
          {"add_prefix_space", prefix_space}};
}

// Puts the token after each text.
Json end_sequence(const std::string& end, const Json& added) {
  const Json last = {{"SpecialToken", {{"id", end}, {"type_id", 0}}}};
  const auto text = [](const char* id) -> Json {
    return {{"Sequence", {{"id", id}, {"type_id", 0}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", {text("A"), last}},
          {"pair", {text("A"), last, text("B"), last}},
          {"special_tokens",
           {{end,
             {{"id", end},
              {"ids", Json::array({with_id(end, added)[1]})},
              {"tokens", Json::array({end})}}}}}};
}

Json metaspace(bool prefix_space) {
  return {{"type", "Metaspace"},
          {"replacement", internal::space_mark},
          {"prepend_scheme", prefix_space ? "always" : "never"},
          {"split", true}};
}

// Returns the tokens with the scores of their pieces.
std::vector<std::pair<std::string, double>> scored_tokens(const internal::SentencePieceFile& pieces,
                                                          const PieceFiles& files) {
  if (!pieces.is_unigram)
    fail("{}: is a model of byte pairs; only unigram models are converted to a tokenizer.json",
         files.model);
  if (pieces.pieces.size() < files.replaced)
    fail("{}: has {} pieces, and {} are to be replaced; fetch the file anew", files.model,
         pieces.pieces.size(), files.replaced);
  std::vector<std::pair<std::string, double>> tokens;
  for (const std::string& token : files.first) tokens.emplace_back(token, 0);
  // As transformers 4: ALBERT never takes a digit and the comma after it as one piece.
  constexpr double never = -100;
  for (size_t i = files.replaced; i < pieces.pieces.size(); ++i) {
    const std::string& piece = pieces.pieces[i];
    const bool ends_number = piece.size() > 1 && piece.ends_with(',') &&
                             std::isdigit(static_cast<unsigned char>(piece[piece.size() - 2]));
    tokens.emplace_back(piece, pieces.scores[i] + (files.rules && ends_number ? never : 0));
  }
  for (const std::string& token : files.last) tokens.emplace_back(token, 0);
  const std::string& mask = files.tokens.special.mask;
  const bool is_piece = std::any_of(tokens.begin(), tokens.end(),
                                    [&](const auto& token) { return token.first == mask; });
  if (!mask.empty() && !is_piece) tokens.emplace_back(mask, 0);
  return tokens;
}

Json replacement(const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

// Rules before the pieces; null if there are none.
Json normaliser_of(const internal::SentencePieceFile& pieces, const PieceFiles& files) {
  Json charsmap = nullptr;
  if (!pieces.charsmap.empty())
    charsmap = {{"type", "Precompiled"}, {"precompiled_charsmap", base64_text(pieces.charsmap)}};
  if (!files.rules && !files.like_bert && !files.keeps_spaces) return charsmap;
  Json all = Json::array();
  if (files.rules) {
    all = {replacement("``", "\""), replacement("''", "\"")};
    if (!files.rules->keep_accents)
      for (const char* type : {"NFKD", "StripAccents"}) all.push_back({{"type", type}});
  }
  if (files.rules ? files.rules->lowercase : files.lowercase)
    all.push_back({{"type", "Lowercase"}});
  if (files.like_bert)
    all.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
  if (!charsmap.is_null()) all.push_back(charsmap);
  if (files.like_bert || files.keeps_spaces)
    all.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  return {{"type", "Sequence"}, {"normalizers", all}};
}

Json sequence_of(const PieceFiles& files, const Json& added) {
  const SpecialTokenNames& special = files.tokens.special;
  if (files.rules || files.like_bert) return bert_sequence(special, added);
  if (special.begin.empty()) return end_sequence(special.end, added);
  return roberta_sequence(special, added, files.prefix_space);
}

}  // namespace

Json tokenizer_json(std::string_view vocabulary, const TokenListFiles& files) {
  const TokenTable tokens = words_of(vocabulary, files.vocabulary);
  const SpecialTokenNames& special = files.tokens.special;
  const Json added = with_all(added_tokens(files.tokens, tokens, false, files.vocabulary), tokens);
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
          {"post_processor", bert_sequence(special, added)},
          // Joins tokens without spaces.
          {"decoder", {{"type", "BPEDecoder"}, {"suffix", "</w>"}}},
          {"model", word_pieces(special, tokens)}};
}

Json tokenizer_json(std::string_view vocabulary, const WordPieceFiles& files) {
  const TokenTable tokens = words_of(vocabulary, files.vocabulary);
  const SpecialTokenNames& special = files.tokens.special;
  const Json added = added_tokens(files.tokens, tokens, files.two_ends, files.vocabulary);
  Json strip = nullptr;
  if (files.strip_accents) strip = *files.strip_accents;
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", files.separate_cjk},
            {"strip_accents", strip},
            {"lowercase", files.lowercase}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", files.two_ends ? roberta_sequence(special, added, false)
                                            : bert_sequence(special, added)},
          {"decoder",
           {{"type", "WordPiece"}, {"prefix", internal::continuation_prefix}, {"cleanup", true}}},
          {"model", word_pieces(special, tokens)}};
}

Json tokenizer_json(std::string_view vocabulary, std::string_view merges,
                    const ByteLevelFiles& files) {
  const Json ids = parse_json(vocabulary, files.vocabulary);
  const TokenTable tokens = internal::read_vocabulary(JsonPosition(ids, files.vocabulary));
  const SpecialTokenNames& special = files.tokens.special;
  const Json added = added_tokens(files.tokens, tokens, true, files.vocabulary);
  Json sequence = nullptr;
  if (!special.begin.empty()) sequence = roberta_sequence(special, added, files.prefix_space);
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", files.prefix_space},
                      {"trim_offsets", true},
                      {"use_regex", true}};
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", bytes},
          {"post_processor", sequence},
          {"decoder", bytes},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", ids},
            {"merges", merges_of(merges, files.merges, tokens)}}}};
}

Json tokenizer_json(const ByteFiles& files) {
  const SpecialTokenNames& special = files.tokens.special;
  std::vector<std::string> names = {special.padding, special.end, special.unknown};
  for (int byte = 0; byte < 256; ++byte)
    names.push_back(internal::byte_spelling(static_cast<uint8_t>(byte)));
  names.insert(names.end(), files.last.begin(), files.last.end());
  const TokenTable tokens(std::move(names), files.name);
  const Json added =
      added_tokens(with_special(files.tokens, files.last), tokens, false, files.name);
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", bytes},
          {"post_processor", end_sequence(special.end, added)},
          {"decoder", bytes},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", special.unknown},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", ids_of(tokens)},
            {"merges", Json::array()}}}};
}

Json tokenizer_json(std::string_view model, const PieceFiles& files) {
  const internal::SentencePieceFile pieces = internal::parse_sentence_piece(model, files.model);
  const auto scored = scored_tokens(pieces, files);
  std::vector<std::string> names;
  names.reserve(scored.size());
  for (const auto& [name, score] : scored) names.push_back(name);
  const TokenTable tokens(std::move(names), files.model);
  const SpecialTokenNames& special = files.tokens.special;
  const Json added =
      added_tokens(with_special(files.tokens, files.last), tokens, !files.like_bert, files.model);
  Json splitter = metaspace(files.prefix_space);
  if (!files.like_bert && !files.keeps_spaces)
    splitter = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, splitter}}};
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", normaliser_of(pieces, files)},
          {"pre_tokenizer", splitter},
          {"post_processor", sequence_of(files, added)},
          {"decoder", metaspace(files.prefix_space)},
          {"model",
           {{"type", "Unigram"},
            {"unk_id", with_id(special.unknown, added)[1]},
            {"vocab", scored},
            {"byte_fallback", false}}}};
}

}  // namespace attend
