#include "attend/import/export_model.h"

#include <filesystem>
#include <set>
#include <sstream>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/files/safetensors.h"
#include "attend/import/export-inl.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/import/text_pairs-inl.h"
#include "attend/models/model_folder.h"
#include "attend/runs/out_folder.h"
#include "attend/tokenizers/marian_tokenizer.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend {
namespace internal {
namespace {

// Row of the table of exported types.
struct ExportedType {
  std::string name;
  // Errors name the folder.
  ExportedFolder (*make)(const PairModel& model, const std::string& folder);
};

const std::vector<ExportedType>& exported_types() {
  static const std::vector<ExportedType> table = {{"embedder", exported_encoder},
                                                  {"encoder", exported_encoder},
                                                  {"classifier", exported_encoder},
                                                  {"tagger", exported_encoder},
                                                  {"reader", exported_encoder},
                                                  {"vit", exported_vision},
                                                  {"lm", exported_gpt2},
                                                  {"transformer", exported_translator}};
  return table;
}

ExportedFolder exported_folder(const PairModel& model, const std::string& folder) {
  std::string known;
  for (const ExportedType& row : exported_types()) {
    if (row.name == model.config.type) return row.make(model, folder);
    known += (known.empty() ? "" : ", ") + row.name;
  }
  fail("{}: model.type is {}; {} are exported", folder, model.config.type, known);
}

// Whether the setting is only used in training, or is in the files of sentence-transformers.
bool is_elsewhere(std::string_view line) {
  for (const std::string_view key :
       {"word_dropout", "output_dropout", "text_", "unit_length", "prompts", "default_prompt",
        "pool_prompt", "side_vectors", "overlap", "fixed_", "shared_tokens"})
    if (line.starts_with(key)) return true;
  return false;
}

// Error, naming the setting, if import would not read back a setting.
void check_same(ModelConfig ours, ModelConfig theirs, const std::string& architecture) {
  std::istringstream here(to_toml(ours.settings())), there(to_toml(theirs.settings()));
  for (std::string line, other; std::getline(here, line) && std::getline(there, other);)
    if (line != other && !is_elsewhere(line))
      fail("model.{}: {} of transformers has {}; models with that are exported", line, architecture,
           other);
}

void write_documents(const ExportedFolder& made, const std::string& out) {
  const std::filesystem::path folder(out);
  for (const auto& [name, document] : made.documents) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    write_file(path.string(), document.dump(2) + "\n");
  }
  for (const auto& [name, file] : made.more) write_safetensors((folder / name).string(), file);
}

// Returns the tokenizers that are written. Both sides share a tokenizer.json.
std::vector<std::string> tokenizers_of(const PairModel& model, const ExportedFolder& made) {
  std::vector<std::string> paths;
  if (!model.text.tokenizer.empty()) paths.push_back(model.text.tokenizer);
  if (holds_pieces(model.text.target_tokenizer) && made.pieces.empty())
    paths.push_back(model.text.target_tokenizer);
  return paths;
}

void write_tokenizers(const PairModel& model, const ExportedFolder& made, const std::string& out) {
  for (const std::string& path : tokenizers_of(model, made)) {
    std::string bytes = read_file(path), name = std::filesystem::path(path).filename().string();
    if (holds_pieces(path)) {
      bytes = without_added_pieces(bytes, path);
      if (!made.pieces.empty()) name = made.pieces;
    } else {
      Json whole = parse_json(bytes, path);
      if (whole.erase(splits_special_key) + whole.erase(languages_key) > 0) bytes = whole.dump();
    }
    write_file(fmt::format("{}/{}", out, name), bytes);
  }
}

// Accepts what a killed export leaves: config.json is written last.
FolderLock take_exported(const std::string& out) {
  const std::set<std::string> folders = {"1_Pooling", "2_Dense", "2_LayerNorm", "3_LayerNorm"};
  std::set<std::string> names = {"added_tokens.json",
                                 "config_sentence_transformers.json",
                                 "generation_config.json",
                                 "model.safetensors",
                                 "modules.json",
                                 "preprocessor_config.json",
                                 "sentence_bert_config.json",
                                 "sentencepiece.bpe.model",
                                 "source.spm",
                                 "target.spm",
                                 "tokenizer.json",
                                 "tokenizer_config.json",
                                 "vocab.json"};
  names.insert(folders.begin(), folders.end());
  FolderLock lock = take_unused(out, names);
  // They may hold incomplete files.
  for (const std::string& folder : folders)
    std::filesystem::remove_all(std::filesystem::path(out) / folder);
  return lock;
}

}  // namespace

// Tokens of the tokenizer, and the rows after them, which have no names.
ExportedTokens exported_tokens(const PairModel& model, const std::string& folder) {
  if (!model.codecs.source.tokenizer || holds_pieces(model.text.tokenizer))
    fail(
        "{}: model.type is {} and data.source_units {}; only models with a tokenizer.json are "
        "exported",
        folder, model.config.type, model.text.source_units);
  if (model.text.language_token)
    fail("{}: data.language_token is true, which a tokenizer.json cannot express", folder);
  if (model.text.fill_length > 0)
    fail("{}: data.fill_length is {}, which a tokenizer.json cannot express", folder,
         model.text.fill_length);
  const TextTokenizer& tokenizer = *model.codecs.source.tokenizer;
  ExportedTokens tokens;
  for (int32_t id = 0;; ++id) {
    const int64_t by_id = model.source_vocabulary.id(fmt::format("<token:{}>", id));
    if (id >= tokenizer.size() && by_id == Vocabulary::unknown) return tokens;
    const int64_t by_name =
        id < tokenizer.size() ? model.source_vocabulary.id(tokenizer.name(id)) : by_id;
    tokens.vectors.push_back(by_name);
    tokens.biases.push_back(by_name == Vocabulary::unknown ? by_id : by_name);
    // A mask is encoded as unknown, but has a score of its own.
    if (by_name != tokens.biases.back()) tokens.mask = id;
  }
}

void add_labels(const PairModel& model, Json& config) {
  std::vector<std::string> labels;
  for (int64_t id = Vocabulary::unknown + 1; id < model.target_vocabulary.size(); ++id)
    labels.push_back(model.target_vocabulary.token(id));
  const bool is_number = !model.answer_kind().has_probabilities();
  if (is_number) labels = {"LABEL_0"};
  const bool is_probability = model.answer_kind().is_probability();
  if (is_probability || model.text.pairs == PairTexts::always)
    config[cross_encoder_key] = {
        {activation_key, is_probability ? sigmoid_activation : no_activation}};
  config["problem_type"] = is_number                            ? "regression"
                           : model.answer_kind().is_label_set() ? "multi_label_classification"
                                                                : "single_label_classification";
  for (size_t id = 0; id < labels.size(); ++id) {
    config["id2label"][std::to_string(id)] = labels[id];
    config["label2id"][labels[id]] = id;
  }
}

namespace {

// Returns the id of the padding token, by its usual names; 0 if there is none. Padding is masked,
// and its vector is not trained.
int64_t padding_of(const Json& tokenizer) {
  for (const Json& token : tokenizer["added_tokens"])
    if (token["content"] == "[PAD]" || token["content"] == "<pad>") return token["id"];
  return 0;
}

// Keys of tokenizer_config.json except the special tokens.
Json settings_of(const PairModel& model, const Json& tokenizer) {
  // Without model_input_names, transformers 4 adds the vector of a type to each token of GPT-2.
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {inputs_key, {"input_ids", "attention_mask"}},
                 {"model_max_length", model.maximum_source_length()}};
  if (model.network->named_parameters().contains(side_vectors_name))
    config[inputs_key].push_back(types_input);
  const Json splitter = tokenizer.value("pre_tokenizer", Json());
  // transformers 4 assumes false if the key is missing.
  if (splitter.is_object() && splitter.value("type", "") == "ByteLevel")
    config["add_prefix_space"] = splitter.value("add_prefix_space", true);
  if (model.codecs.source.cuts_left()) config["truncation_side"] = "left";
  if (tokenizer.value(splits_special_key, false)) config[splits_special_key] = true;
  const auto [begin, end] = tokens_around(tokenizer.value("post_processor", Json()));
  if (!begin.empty()) config["cls_token"] = begin;
  if (!end.empty()) config["sep_token"] = end;
  return config;
}

}  // namespace

void add_tokenizer_config(const PairModel& model, const ExportedTokens& tokens,
                          ExportedFolder& made) {
  const Json tokenizer = parse_json(read_file(model.text.tokenizer), model.text.tokenizer);
  const auto spelled = [&](int64_t id) -> Json {
    for (const Json& token : tokenizer["added_tokens"])
      if (token["id"] == id) return token["content"];
    return nullptr;
  };
  Json& config = made.documents["tokenizer_config.json"];
  config = settings_of(model, tokenizer);
  const int64_t padding = padding_of(tokenizer);
  config["pad_token"] = spelled(padding);
  if (made.config.contains("pad_token_id")) made.config["pad_token_id"] = padding;
  if (tokens.mask) config["mask_token"] = spelled(*tokens.mask);
  if (tokens.mask && made.config.contains("mask_token_id"))
    made.config["mask_token_id"] = *tokens.mask;
  if (made.end) config["eos_token"] = config["bos_token"] = spelled(*made.end);
}

ForeignModel read_again(const Json& config,
                        const std::function<ForeignModel(const JsonPosition& config)>& read) {
  const std::string name = "config.json of the export";
  const Json written = parse_json(config.dump(), name);
  return read({written, name});
}

}  // namespace internal

ExportedModel export_model(const std::string& folder, const std::string& out) {
  using namespace internal;
  const PairModel model = load_pair_model(folder);
  ExportedFolder made = exported_folder(model, folder);
  check_same(model.config, made.again.config, made.architecture);
  add_unit(model, made);
  if (!model.answer_kind().has_answers()) add_sentence_encoder(model, made);
  if (!model.text.prompts.empty()) add_pair_prompts(model, folder, made);
  const FolderLock lock = take_exported(out);
  made.file.metadata["format"] = "pt";
  write_safetensors(out + "/model.safetensors", made.file);
  write_tokenizers(model, made, out);
  write_documents(made, out);
  write_file(out + "/config.json", made.config.dump(2) + "\n");
  return {made.architecture};
}

}  // namespace attend
