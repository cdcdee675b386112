#include <fmt/ranges.h>

#include <iterator>
#include <vector>

#include "attend/base/error.h"
#include "attend/files/npz.h"
#include "attend/import/conversion-inl.h"
#include "attend/import/foreign_file-inl.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/models/model_size.h"
#include "attend/models/seq2seq_config.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {
namespace {

using at::Tensor;

// Their ids that are not letters or not phonemes.
constexpr int64_t unknown_letter = 1, last_letter = 2;
constexpr int64_t first_phoneme = 2, last_phoneme = 3;

constexpr const char* phonemes[] = {
    "AA0", "AA1", "AA2", "AE0", "AE1", "AE2", "AH0", "AH1", "AH2", "AO0", "AO1", "AO2",
    "AW0", "AW1", "AW2", "AY0", "AY1", "AY2", "B",   "CH",  "D",   "DH",  "EH0", "EH1",
    "EH2", "ER0", "ER1", "ER2", "EY0", "EY1", "EY2", "F",   "G",   "HH",  "IH0", "IH1",
    "IH2", "IY0", "IY1", "IY2", "JH",  "K",   "L",   "M",   "N",   "NG",  "OW0", "OW1",
    "OW2", "OY0", "OY1", "OY2", "P",   "R",   "S",   "SH",  "T",   "TH",  "UH0", "UH1",
    "UH2", "UW",  "UW0", "UW1", "UW2", "V",   "W",   "Y",   "Z",   "ZH"};

enum class ArrayUse { copied, letter_rows, phoneme_rows, phoneme_scores };

struct ArrayRow {
  const char *theirs, *ours;
  ArrayUse use = ArrayUse::copied;
};

const std::vector<ArrayRow>& arrays() {
  static const std::vector<ArrayRow> table = {
      {"enc_emb", "source_embedding.weight", ArrayUse::letter_rows},
      {"enc_w_ih", "encoder.layer0.weight_ih_l0"},
      {"enc_w_hh", "encoder.layer0.weight_hh_l0"},
      {"enc_b_ih", "encoder.layer0.bias_ih_l0"},
      {"enc_b_hh", "encoder.layer0.bias_hh_l0"},
      {"dec_emb", "target_embedding.weight", ArrayUse::phoneme_rows},
      {"dec_w_ih", "decoder.gru.weight_ih"},
      {"dec_w_hh", "decoder.gru.weight_hh"},
      {"dec_b_ih", "decoder.gru.bias_ih"},
      {"dec_b_hh", "decoder.gru.bias_hh"},
      {"fc_w", "output.weight", ArrayUse::phoneme_rows},
      {"fc_b", "output.bias", ArrayUse::phoneme_scores}};
  return table;
}

// Splits a word into letters as g2p-en does: without accents, in lower case, with an end token.
TextTokenizer letter_tokenizer() {
  const auto special = [](const char* token, int64_t id) -> Json {
    return {{"id", id},        {"content", token},    {"single_word", false}, {"lstrip", false},
            {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  Json vocabulary = {{"<pad>", 0}, {"<unk>", unknown_letter}, {"</s>", last_letter}};
  for (char letter = 'a'; letter <= 'z'; ++letter)
    vocabulary[std::string(1, letter)] = last_letter + 1 + letter - 'a';
  const Json end = {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}};
  const Json word = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json other = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  const Json json = {
      {"version", "1.0"},
      {"added_tokens", {special("<pad>", 0), special("<unk>", 1), special("</s>", last_letter)}},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers", {{{"type", "NFD"}}, {{"type", "StripAccents"}}, {{"type", "Lowercase"}}}}}},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", Json::array({word, end})},
        {"pair", Json::array({word, end, other})},
        {"special_tokens",
         {{"</s>",
           {{"id", "</s>"},
            {"ids", Json::array({last_letter})},
            {"tokens", Json::array({"</s>"})}}}}}}},
      {"decoder", nullptr},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"vocab", vocabulary},
        {"merges", Json::array()}}}};
  return TextTokenizer::parse(json.dump(), "tokenizer.json");
}

// Tokens that are not phonemes are named by their ids.
std::vector<std::string> phoneme_names() {
  std::vector<std::string> names;
  for (int64_t id = 0; id <= last_phoneme; ++id) names.push_back(fmt::format("<token:{}>", id));
  names.insert(names.end(), std::begin(phonemes), std::end(phonemes));
  return names;
}

// Sizes of the matrix with that name.
at::IntArrayRef matrix_sizes(const NamedTensors& theirs, const char* name,
                             const std::string& path) {
  const auto found = theirs.find(name);
  if (found == theirs.end() || found->second.dim() != 2)
    fail("{}: holds no matrix {}, so it is not a model of g2p-en; name its checkpoint20.npz", path,
         in_quotes(name));
  return found->second.sizes();
}

PairModel described(const NamedTensors& theirs, const TextTokenizer& tokenizer,
                    const std::string& path) {
  PairModel model;
  model.config.type = "seq2seq";
  auto& config = model.config.of<Seq2SeqConfig>();
  config.score = Seq2SeqConfig::no_attention;
  config.plain = true;
  config.embedding = matrix_sizes(theirs, "enc_emb", path)[1];
  config.hidden = matrix_sizes(theirs, "enc_w_hh", path)[1];
  model.text = model.config.row().text;
  model.text.source_units = tokenizer_units;
  model.text.tokenizer = "tokenizer.json";
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(tokenizer.size()));
  for (int32_t id = 0; id < tokenizer.size(); ++id) names.push_back(tokenizer.name(id));
  model.source_vocabulary = in_order(names, path);
  model.target_vocabulary = in_order(phoneme_names(), path);
  check_copies(model, import_copies, "import");
  return model;
}

Tensor made_of(const Tensor& theirs, ArrayUse use) {
  switch (use) {
    case ArrayUse::letter_rows:
      return with_fixed_rows(theirs, std::vector<int64_t>(4, unknown_letter));
    case ArrayUse::phoneme_rows:
      return with_fixed_rows(theirs, {0, first_phoneme, last_phoneme, 1});
    case ArrayUse::phoneme_scores: {
      Tensor made = with_fixed_rows(theirs, {0, first_phoneme, last_phoneme, 1});
      // EOS replaces their end token.
      for (const int64_t id : {Vocabulary::padding, Vocabulary::bos, Vocabulary::unknown,
                               Vocabulary::unknown + 1 + last_phoneme})
        made[id] = never_answered;
      return made;
    }
    default:
      return theirs.contiguous();
  }
}

TensorFile converted(const NamedTensors& theirs, const PairModel& model, const std::string& path) {
  const auto outline = attend::outline(model)->named_parameters();
  constexpr int64_t fixed = Vocabulary::unknown + 1;
  TensorFile made;
  for (const ArrayRow& row : arrays()) {
    const auto found = theirs.find(row.theirs);
    if (found == theirs.end()) fail("{}: array {} is missing", path, in_quotes(row.theirs));
    std::vector<int64_t> shape = outline[row.ours].sizes().vec();
    if (row.use != ArrayUse::copied) shape[0] -= fixed;
    if (found->second.sizes() != at::IntArrayRef(shape) ||
        found->second.scalar_type() != at::kFloat)
      fail("{}: array {} has the type {} and shape [{}]; g2p-en has float32 of shape [{}]", path,
           in_quotes(row.theirs), c10::toString(found->second.scalar_type()),
           fmt::join(found->second.sizes(), ", "), fmt::join(shape, ", "));
    made.tensors[row.ours] = made_of(found->second, row.use);
  }
  if (theirs.size() != arrays().size())
    fail("{}: holds {} arrays, and a model of g2p-en has {}", path, theirs.size(), arrays().size());
  return made;
}

}  // namespace

ForeignFile read_pronouncer(const std::string& path) {
  const NamedTensors theirs = read_npz(path);
  TextTokenizer tokenizer = letter_tokenizer();
  PairModel model = described(theirs, tokenizer, path);
  TensorFile weights = converted(theirs, model, path);
  return {std::move(model), std::move(tokenizer), std::move(weights)};
}

}  // namespace attend::internal
