#include "attend/models/model_config.h"

#include "attend/base/error.h"

namespace attend {
namespace {

// f of the settings of the type that is chosen.
template <class Config, class F>
auto with_chosen(Config& config, F f) {
  if (config.type == "classifier") return f(config.classifier);
  if (config.type == "transformer") return f(config.transformer);
  if (config.type == "lm") return f(config.lm);
  if (config.type == "encoder") return f(config.encoder);
  if (config.type == "vit") return f(config.vit);
  return f(config.seq2seq);
}

std::shared_ptr<PairNetwork> make(const Seq2SeqConfig& config, const SourceShape& source,
                                  int64_t targets) {
  return std::make_shared<Seq2Seq>(config, source, targets);
}

std::shared_ptr<PairNetwork> make(const TransformerConfig& config, const SourceShape& source,
                                  int64_t targets) {
  return std::make_shared<Transformer>(config, source, targets);
}

std::shared_ptr<PairNetwork> make(const ClassifierConfig& config, const SourceShape& source,
                                  int64_t targets) {
  return std::make_shared<Classifier>(config, source, targets);
}

void refuse_frames(const SourceShape& source, const std::string& type) {
  if (source.is_frames())
    fail("model.type is {}, which reads no images or sounds; take seq2seq, transformer or vit",
         type);
}

std::shared_ptr<PairNetwork> make(const LanguageModelConfig& config, const SourceShape& source,
                                  int64_t targets) {
  refuse_frames(source, "lm");
  if (source.tokens != targets)
    fail("model.type is lm, with {} source and {} target tokens; it has one vocabulary for both",
         source.tokens, targets);
  return std::make_shared<LanguageModel>(config, targets);
}

std::shared_ptr<PairNetwork> make(const MaskedLanguageModelConfig& config,
                                  const SourceShape& source, int64_t) {
  refuse_frames(source, "encoder");
  return std::make_shared<MaskedLanguageModel>(config, source);
}

int64_t longest_source(const LanguageModelConfig& config) { return config.maximum_source_length(); }
int64_t longest_source(const auto& config) { return config.maximum_source_length; }

}  // namespace

Setting ModelConfig::type_setting() {
  return {"model.type",
          &type,
          "what the model is: seq2seq (recurrent) and transformer answer with a sequence, "
          "classifier with a label, and so does vit, the Vision Transformer; lm goes on with a "
          "text; encoder fills in what is hidden from it",
          {},
          {},
          {"seq2seq", "transformer", "classifier", "vit", "lm", "encoder"}};
}

Settings ModelConfig::settings() {
  Settings all = {type_setting()};
  for (Setting& setting : with_chosen(*this, [](auto& chosen) { return chosen.settings(); }))
    all.push_back(std::move(setting));
  return all;
}

void ModelConfig::check() const {
  with_chosen(*this, [](const auto& chosen) { chosen.check(); });
}

int64_t ModelConfig::maximum_source_length() const {
  return with_chosen(*this, [](const auto& chosen) { return longest_source(chosen); });
}

int64_t ModelConfig::maximum_target_length() const {
  return is_language_model() ? lm.maximum_target_length() : longest_answer(maximum_source_length());
}

bool ModelConfig::wants_joint_vocabulary() const {
  return type == "seq2seq" ? seq2seq.wants_joint_vocabulary()
                           : type == "transformer" && transformer.tied == "all";
}

std::shared_ptr<PairNetwork> ModelConfig::make_network(const SourceShape& source,
                                                       int64_t target_tokens) const {
  return with_chosen(*this,
                     [&](const auto& chosen) { return make(chosen, source, target_tokens); });
}

int64_t longest_answer(int64_t source_tokens) { return 3 * source_tokens + 10; }

TextConfig default_text(const ModelConfig& model) {
  if (model.type == "vit") return {.source_units = "image", .target_units = "line"};
  if (model.is_classifier()) return {.source_units = "space", .target_units = "line"};
  if (model.is_masked()) return {.source_units = "space", .target_units = "space"};
  if (model.is_language_model())
    return {.source_units = "char", .target_units = "char", .joint_vocabulary = true};
  return {};
}

}  // namespace attend
