#include <deque>
#include <type_traits>

#include "attend/base/error.h"
#include "attend/models/classifier.h"
#include "attend/models/embedder.h"
#include "attend/models/graph_network.h"
#include "attend/models/language_model.h"
#include "attend/models/masked_language_model.h"
#include "attend/models/model_type.h"
#include "attend/models/passage_reader.h"
#include "attend/models/seq2seq.h"
#include "attend/models/set_transformer.h"
#include "attend/models/tagger.h"
#include "attend/models/transformer.h"
#include "attend/models/vit.h"

namespace attend {
namespace {

// Returns the default settings of a type. Its network is constructed from Config, SourceShape and
// TargetShape; instead of the last, it may take a number of tokens.
template <class Config, class Network>
std::unique_ptr<NetworkConfig> pairs() {
  return std::make_unique<NetworkConfigOf<Config>>(
      [](const Config& config, const SourceShape& source,
         const TargetShape& target) -> std::shared_ptr<PairNetwork> {
        if constexpr (std::is_constructible_v<Network, Config, SourceShape, TargetShape>)
          return std::make_shared<Network>(config, source, target);
        else
          return std::make_shared<Network>(config, source, target.tokens);
      });
}

void refuse_frames(const SourceShape& source, const char* type) {
  if (source.is_frames())
    fail(
        "model.type is {}, which does not read images, sounds, sets or molecules; take "
        "transformer, classifier, vit or set",
        type);
}

template <class Config>
std::shared_ptr<PairNetwork> make_language_model(const Config& config, const SourceShape& source,
                                                 const TargetShape& target) {
  refuse_frames(source, "lm");
  if (source.tokens() != target.tokens)
    fail("model.type is lm, with {} source and {} target tokens; it has one vocabulary for both",
         source.tokens(), target.tokens);
  return std::make_shared<LanguageModel>(config, target.tokens);
}

std::shared_ptr<PairNetwork> make_embedder(const EmbedderConfig& config, const SourceShape& source,
                                           const TargetShape&) {
  return std::make_shared<Embedder>(config, source);
}

std::shared_ptr<PairNetwork> make_reader(const PassageReaderConfig& config,
                                         const SourceShape& source, const TargetShape&) {
  return std::make_shared<PassageReader>(config, source);
}

std::shared_ptr<PairNetwork> make_encoder(const MaskedLanguageModelConfig& config,
                                          const SourceShape& source, const TargetShape&) {
  return std::make_shared<MaskedLanguageModel>(config, source);
}

template <auto make, class Config>
std::unique_ptr<NetworkConfig> made_by() {
  return std::make_unique<NetworkConfigOf<Config>>(make);
}

struct Types {
  std::deque<ModelType> rows = {
      {.name = "seq2seq",
       .summary = "recurrent, answers with a sequence",
       .config = pairs<Seq2SeqConfig, Seq2Seq>},
      {.name = "transformer",
       .summary = "Transformer, answers with a sequence",
       .config = pairs<TransformerConfig, Transformer>},
      {.name = "classifier",
       .summary = "answers with a label",
       .answers = &label_answers(),
       .reads_pairs = true,
       .text = {.source_units = "space", .target_units = "line"},
       .config = pairs<ClassifierConfig, Classifier>},
      {.name = "vit",
       .summary = "the Vision Transformer, a label for an image",
       .answers = &label_answers(),
       .text = {.source_units = "image", .target_units = "line"},
       .config = pairs<VitConfig, Classifier>},
      {.name = "set",
       .summary = "the Set Transformer, a label or a number for a set",
       .answers = &label_answers(),
       .text = {.source_units = "set", .target_units = "line"},
       .label_smoothing = 0,
       .config = pairs<SetTransformerConfig, Classifier>},
      {.name = "tagger",
       .summary = "answers with a label for each token",
       .answers = &tag_answers(),
       .text = {.source_units = "space", .target_units = "space"},
       .label_smoothing = 0,
       .config = pairs<TaggerConfig, Tagger>},
      {.name = "reader",
       .summary = "answers a question with a part of a passage",
       .answers = &span_answers(),
       .reads_pairs = true,
       .text = {.source_units = "space",
                .target_units = "line",
                .normalise = NormalForm::none,
                .pairs = PairTexts::always,
                .target = TargetKind::span},
       .label_smoothing = 0,
       .config = made_by<make_reader, PassageReaderConfig>},
      {.name = "lm",
       .summary = "continues a text",
       .answers = &continuation_answers(),
       .text = {.source_units = "char", .target_units = "char", .joint_vocabulary = true},
       .label_smoothing = 0,
       .config = made_by<make_language_model<LanguageModelConfig>, LanguageModelConfig>},
      {.name = "recommender",
       .summary = "ranks the next items of a user",
       .answers = &item_answers(),
       .known_source = "item",
       .text = {.format = DataFormat::interactions,
                .source_units = "space",
                .target_units = "space",
                .joint_vocabulary = true},
       .label_smoothing = 0,
       .config = made_by<make_language_model<RecommenderConfig>, RecommenderConfig>},
      {.name = "graph",
       .summary = "a class for each node of a graph, from its neighbours",
       .answers = &label_answers(),
       .known_source = "node",
       .text = {.format = DataFormat::graph, .source_units = "line", .target_units = "line"},
       .label_smoothing = 0,
       .config = pairs<GraphNetworkConfig, GraphNetwork>},
      {.name = "encoder",
       .summary = "fills in masked tokens",
       .answers = &filled_answers(),
       .text = {.source_units = "space", .target_units = "space"},
       .label_smoothing = 0,
       .config = made_by<make_encoder, MaskedLanguageModelConfig>},
      {.name = "embedder",
       .summary = "gives vectors of texts, with imported weights",
       .answers = &vector_answers(),
       .text = {.source_units = "space", .target_units = "line"},
       .label_smoothing = 0,
       .config = made_by<make_embedder, EmbedderConfig>}};
  std::vector<const ModelType*> listed;

  Types() {
    for (const ModelType& row : rows) listed.push_back(&row);
  }

  void add(ModelType type) {
    rows.push_back(std::move(type));
    listed.push_back(&rows.back());
  }

  const ModelType* find(std::string_view name) const {
    for (const ModelType* row : listed)
      if (row->name == name) return row;
    return nullptr;
  }
};

Types& types() {
  static Types all;
  return all;
}

}  // namespace

int64_t longest_answer(int64_t source_tokens) { return 3 * source_tokens + 10; }

const std::vector<const ModelType*>& model_types() { return types().listed; }

const ModelType& model_type(std::string_view name) {
  if (const ModelType* found = types().find(name)) return *found;
  std::vector<std::string> names;
  for (const ModelType* row : model_types()) names.push_back(row->name);
  fail("model.type = {}: unknown type; the types are {}", in_quotes(name), fmt::join(names, ", "));
}

void register_model_type(ModelType type) {
  if (types().find(type.name))
    fail("[model types] {} exists already; choose another name", in_quotes(type.name));
  types().add(std::move(type));
}

}  // namespace attend
