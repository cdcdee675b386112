#include "attend/import/export_model.h"

#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/safetensors.h"
#include "attend/import/encoder-inl.h"
#include "attend/import/export-inl.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/models/classifier.h"
#include "attend/models/embedder.h"
#include "attend/models/model_folder.h"
#include "attend/models/tagger.h"
#include "attend/runs/out_folder.h"

namespace attend {
namespace internal {
namespace {

using at::Tensor;

// A class that an encoder may become.
struct ExportTarget {
  const char* model_type;
  const EncoderType& type;
  const EncoderArchitecture& architecture;
};

// Those of the tokenizer, and those behind them, which have rows and no name.
ExportedTokens exported_tokens(const PairModel& model) {
  const TextTokenizer& tokenizer = *model.codecs.source.tokenizer;
  ExportedTokens tokens;
  for (int32_t id = 0;; ++id) {
    const int64_t by_id = model.source_vocabulary.id(fmt::format("<token:{}>", id));
    if (id >= tokenizer.size() && by_id == Vocabulary::unknown) return tokens;
    const int64_t by_name =
        id < tokenizer.size() ? model.source_vocabulary.id(tokenizer.name(id)) : by_id;
    tokens.vectors.push_back(by_name);
    tokens.biases.push_back(by_name == Vocabulary::unknown ? by_id : by_name);
    // A mask is read as unknown, and has a score of its own.
    if (by_name != tokens.biases.back()) tokens.mask = id;
  }
}

Json labels_of(const PairModel& model) {
  Json labels = Json::object();
  for (int64_t id = Vocabulary::unknown + 1; id < model.target_vocabulary.size(); ++id)
    labels[std::to_string(id - Vocabulary::unknown - 1)] = model.target_vocabulary.token(id);
  return labels;
}

// What read_encoder reads.
Json config_of(const PairModel& model, const ExportTarget& target, int64_t tokens) {
  ModelConfig ours = model.config;
  const EncoderHead head = target.architecture.head;
  const EncoderType& type = target.type;
  const SourceEncoderConfig& encoder = encoder_of(ours, head);
  Json config = {{"architectures", Json::array({target.architecture.name})},
                 {"model_type", target.model_type},
                 {type.sizes.depth, encoder.depth},
                 {type.sizes.layers, encoder.layers},
                 {type.sizes.heads, encoder.heads},
                 {type.sizes.feed_forward, encoder.feed_forward},
                 {type.sizes.activation, activation_name(encoder.activation)},
                 {type.dropout, encoder.dropout},
                 {type.attention_dropout, encoder.attention_dropout},
                 {"vocab_size", tokens},
                 {"pad_token_id", 0},
                 {"max_position_embeddings", encoder.maximum_source_length}};
  if (type.epsilon != nullptr) config[type.epsilon] = encoder.epsilon;
  for (const TensorRow& row : type.tensors)
    if (row.use == TensorUse::first_row_added) config["type_vocab_size"] = 1;
  if (head == EncoderHead::labels || head == EncoderHead::token_labels) {
    config[type.label_dropout] = head == EncoderHead::labels
                                     ? ours.of<ClassifierConfig>().output_dropout
                                     : ours.of<TaggerConfig>().output_dropout;
    config["id2label"] = labels_of(model);
    for (const auto& [id, label] : config["id2label"].items())
      config["label2id"][label.get<std::string>()] = std::stoll(id);
  }
  return config;
}

// Settings of training alone, and those that sentence-transformers' files say.
bool is_elsewhere(std::string_view line) {
  for (const std::string_view key : {"word_dropout", "text_vector", "unit_length"})
    if (line.starts_with(key)) return true;
  return false;
}

// Error, naming it, on a setting that their reader would not find again.
void check_same(ModelConfig ours, ModelConfig theirs, const std::string& architecture) {
  std::istringstream here(to_toml(ours.settings())), there(to_toml(theirs.settings()));
  for (std::string line, other; std::getline(here, line) && std::getline(there, other);)
    if (line != other && !is_elsewhere(line))
      fail("model.{}: {} of transformers has {}; such models are not exported", line, architecture,
           other);
}

std::optional<ExportTarget> find_target(const ModelConfig& config) {
  const std::pair<const char*, const EncoderType&> types[] = {{"bert", bert_type()},
                                                              {"distilbert", distilbert_type()}};
  for (const auto& [name, type] : types)
    for (const EncoderArchitecture& row : type.architectures) {
      if (type_of(row.head) != config.type) continue;
      if (row.head == EncoderHead::labels &&
          row.pooled != config.of<ClassifierConfig>().hidden_activation)
        continue;
      return ExportTarget{name, type, row};
    }
  return std::nullopt;
}

ExportTarget target_of(const PairModel& model, const std::string& folder) {
  const std::optional<ExportTarget> target = find_target(model.config);
  if (target) return *target;
  fail(
      "{}: model.type is {}, or what is below its labels is another than tanh or relu; embedder, "
      "encoder, classifier, tagger and lm are exported",
      folder, model.config.type);
}

void check_texts(const PairModel& model, const std::string& folder) {
  if (!model.codecs.source.tokenizer)
    fail(
        "{}: model.type is {} and data.source_units {}; models with a tokenizer.json alone are "
        "exported",
        folder, model.config.type, model.text.source_units);
  if (model.answers_numbers()) fail("{}: data.target is number; labels alone are exported", folder);
  if (model.text.language_token)
    fail("{}: data.language_token is true, which no tokenizer.json says", folder);
}

// The tensor that import would make the parameter of, or a part of it.
Tensor exported(const TensorRow& row, const Tensor& ours, const ExportedTokens& tokens) {
  switch (row.use) {
    case TensorUse::token_rows:
      return ours.index_select(0, at::tensor(tokens.vectors, at::kLong));
    case TensorUse::token_biases:
      return ours.index_select(0, at::tensor(tokens.biases, at::kLong));
    case TensorUse::first_row_added:
      return at::zeros({1, ours.size(1)});
    case TensorUse::transposed:
      return ours.t();
    default:
      return ours;
  }
}

ExportedFolder exported_encoder(const PairModel& model, const ExportedTokens& tokens,
                                const std::string& folder) {
  const ExportTarget target = target_of(model, folder);
  const EncoderType& type = target.type;
  const EncoderArchitecture& architecture = target.architecture;
  ExportedFolder made{.architecture = architecture.name,
                      .config = config_of(model, target, std::ssize(tokens.vectors))};
  made.again =
      read_again(made.config, [&](const JsonPlace& config) { return read_encoder(config, type); });
  const int64_t layers = made.again.layers;
  const bool is_head = architecture.head != EncoderHead::none;
  add_exported(model, tokens, type.tensors, layers, is_head ? type.prefix : "", made.file);
  add_exported(model, tokens, architecture.tensors, layers, "", made.file);
  return made;
}

// The special token of that id, as the tokenizer.json spells it.
Json spelled_special(const Json& tokenizer, int64_t id) {
  for (const Json& token : tokenizer["added_tokens"])
    if (token["id"] == id) return token["content"];
  return nullptr;
}

void write_tokenizer_config(const ExportedTokens& tokens, const std::optional<int64_t>& end,
                            const std::string& out) {
  const std::string path = out + "/tokenizer.json";
  const Json tokenizer = parse_json(read_file(path), path);
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  // Which token fills a batch up does not matter, for it is masked.
  config["pad_token"] = spelled_special(tokenizer, 0);
  if (tokens.mask) config["mask_token"] = spelled_special(tokenizer, *tokens.mask);
  if (end) config["eos_token"] = config["bos_token"] = spelled_special(tokenizer, *end);
  write_file(out + "/tokenizer_config.json", config.dump(2) + "\n");
}

// What sentence-transformers reads.
void write_sentence_encoder(const EmbedderConfig& config, const std::string& out) {
  const bool first = config.text_vector == TextVector::first;
  Json modules = Json::array({{{"idx", 0},
                               {"name", "0"},
                               {"path", ""},
                               {"type", "sentence_transformers.models.Transformer"}},
                              {{"idx", 1},
                               {"name", "1"},
                               {"path", "1_Pooling"},
                               {"type", "sentence_transformers.models.Pooling"}}});
  if (config.unit_length)
    modules.push_back({{"idx", 2},
                       {"name", "2"},
                       {"path", "2_Normalize"},
                       {"type", "sentence_transformers.models.Normalize"}});
  const Json pooling = {{"word_embedding_dimension", config.depth},
                        {"pooling_mode_cls_token", first},
                        {"pooling_mode_mean_tokens", !first}};
  const Json length = {{"max_seq_length", config.maximum_source_length}, {"do_lower_case", false}};
  // A killed export leaves parts of files there.
  std::filesystem::remove_all(out + "/1_Pooling");
  std::filesystem::create_directory(out + "/1_Pooling");
  write_file(out + "/1_Pooling/config.json", pooling.dump(2) + "\n");
  write_file(out + "/sentence_bert_config.json", length.dump(2) + "\n");
  write_file(out + "/modules.json", modules.dump(2) + "\n");
}

}  // namespace

void add_exported(const PairModel& model, const ExportedTokens& tokens,
                  const std::vector<TensorRow>& rows, int64_t layers, const std::string& prefix,
                  TensorFile& file) {
  const auto parameters = model.network->named_parameters();
  for (const TensorRow& row : rows) {
    if (row.theirs.empty() || row.use == TensorUse::unused || row.use == TensorUse::repeated)
      continue;
    const bool layered = row.theirs.find("{}") != std::string::npos;
    for (int64_t layer = 0; layer < (layered ? layers : 1); ++layer) {
      const Tensor& ours = parameters[fmt::format(fmt::runtime(row.ours), layer)];
      const Tensor part = exported(row, ours.detach(), tokens);
      Tensor& whole = file.tensors[prefix + fmt::format(fmt::runtime(row.theirs), layer)];
      // Parts of what a layer gives stand beside each other in the table.
      const int64_t axis = row.use == TensorUse::transposed ? 1 : 0;
      whole = row.part == 0 ? part.contiguous() : at::cat({whole, part}, axis);
    }
  }
}

ForeignModel read_again(const Json& config,
                        const std::function<ForeignModel(const JsonPlace& config)>& read) {
  const std::string name = "config.json of the export";
  const Json written = parse_json(config.dump(), name);
  return read({written, name});
}

}  // namespace internal

ExportedModel export_model(const std::string& folder, const std::string& out) {
  using namespace internal;
  const PairModel model = load_pair_model(folder);
  check_texts(model, folder);
  const ExportedTokens tokens = exported_tokens(model);
  ExportedFolder made = model.config.continues() ? exported_gpt2(model, tokens, folder)
                                                 : exported_encoder(model, tokens, folder);
  check_same(model.config, made.again.config, made.architecture);
  const FolderLock lock =
      take_unused(out, {"1_Pooling", "model.safetensors", "modules.json",
                        "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json"});
  made.file.metadata["format"] = "pt";
  write_safetensors(out + "/model.safetensors", made.file);
  model.codecs.source.tokenizer->save(out + "/tokenizer.json");
  write_tokenizer_config(tokens, made.end, out);
  if (model.config.row().answers == Answers::vectors) {
    ModelConfig config = model.config;
    write_sentence_encoder(config.of<EmbedderConfig>(), out);
  }
  write_file(out + "/config.json", made.config.dump(2) + "\n");
  return {made.architecture};
}

}  // namespace attend
