#include "attend/inference/model.h"

#include <algorithm>
#include <utility>

#include "attend/decode/not_a_number.h"
#include "attend/inference/predictor.h"
#include "attend/models/answer_codec.h"
#include "attend/models/model_folder.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/text_comparison.h"
#include "attend/nn/devices.h"
#include "attend/text/normalise.h"
#include "attend/text/units.h"

namespace attend {
namespace {

// The `maximum` most probable tokens from `first` on, best first. logarithms: [V] float32.
std::vector<TokenProbability> most_probable(const at::Tensor& logarithms, int64_t first,
                                            int64_t maximum, const Vocabulary& vocabulary) {
  const at::Tensor named = logarithms.slice(0, first).contiguous();
  const auto [values, places] = named.topk(std::min(maximum, named.numel()));
  std::vector<TokenProbability> found;
  found.reserve(static_cast<size_t>(values.numel()));
  for (int64_t i = 0; i < values.numel(); ++i)
    found.push_back(
        {vocabulary.token(first + places[i].item<int64_t>()), std::exp(values[i].item<double>())});
  return found;
}

bool same_tokens(const Vocabulary& a, const Vocabulary& b) {
  if (a.size() != b.size()) return false;
  for (int64_t id = 0; id < a.size(); ++id)
    if (a.token(id) != b.token(id)) return false;
  return true;
}

// Ids of a text, with Vocabulary::unknown for each occurrence of the mask. Appends the positions of
// the masks to `asked`.
std::vector<int64_t> masked_ids(const PairModel& model, const std::string& text,
                                const std::string& mask, std::vector<int64_t>& asked) {
  const TextCodec& codec = model.codecs.source;
  std::vector<int64_t> ids;
  if (codec.tokenizer) {
    // The tokenizer splits the whole text and has its own mask.
    const std::vector<std::string> tokens = codec.split(text);
    for (size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i] == mask) asked.push_back(static_cast<int64_t>(i));
    ids = model.source_vocabulary.encode(tokens);
    for (const int64_t place : asked) ids[static_cast<size_t>(place)] = Vocabulary::unknown;
    return ids;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(mask, begin), text.size());
    const auto tokens = codec.split(text.substr(begin, end - begin));
    for (const int64_t id : model.source_vocabulary.encode(tokens)) ids.push_back(id);
    if (end == text.size()) break;
    asked.push_back(static_cast<int64_t>(ids.size()));
    ids.push_back(Vocabulary::unknown);
    begin = end + mask.size();
  }
  return ids;
}

const TextPrompts& text_prompts(const PairModel& model) {
  static const TextPrompts none;
  const auto* comparison = dynamic_cast<const TextComparison*>(model.network.get());
  return comparison == nullptr ? none : comparison->prompts();
}

// Why the text is invalid; empty for a valid text.
std::string fault_of(const std::string& text) {
  try {
    (void)normalised(text, NormalForm::none);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Invalid texts stay as they are, so that errors give positions in them.
std::vector<std::string> prompted(std::vector<std::string> texts, const std::string& prompt) {
  if (prompt.empty()) return texts;
  if (const std::string fault = fault_of(prompt); !fault.empty()) fail("the prompt: {}", fault);
  for (std::string& text : texts)
    if (!split_words(text).empty() && fault_of(text).empty()) text.insert(0, prompt);
  return texts;
}

// Number of tokens of the prompt that are not part of the text vector. As in sentence-transformers,
// a special token at its end does not count.
int64_t unpooled_tokens(const Model& model, const std::string& prompt, const TextPrompts& prompts) {
  if (prompt.empty() || prompts.are_pooled) return 0;
  const std::vector<SourceToken> tokens = model.tokenise(prompt);
  const int64_t read = std::min<int64_t>(std::ssize(tokens), model.maximum_source_length());
  return read - (!tokens.empty() && tokens.back().is_special);
}

std::vector<float> numbers_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel()};
}

// Replaces the languages of the folder by the given ones.
void choose_languages(const ModelOptions& options, PairModel& model) {
  model.codecs.source = model.codecs.source.in_language(options.source_language);
  model.codecs.target = answer_codec(model, options.target_language);
  if (!options.source_language.empty()) model.text.source_language = options.source_language;
  if (!options.target_language.empty() && only_answer_language(model).empty())
    model.text.target_language = options.target_language;
}

// Replaces the usual prompt of the folder by the given one.
void choose_prompt(const ModelOptions& options, PairModel& model) {
  if (!options.prompt && options.prompt_name.empty()) return;
  if (options.prompt && !options.prompt_name.empty())
    fail("a prompt and the name {} of a prompt are both given; leave one out",
         in_quotes(options.prompt_name));
  model.codecs.source = model.codecs.source.with_prompt(
      options.prompt ? *options.prompt : model.text.text_prompts().text(options.prompt_name));
}

std::unique_ptr<Predictor> ready_predictor(
    PairModel model, const ModelOptions& options,
    const std::vector<std::shared_ptr<PairNetwork>>& others = {}) {
  choose_languages(options, model);
  choose_prompt(options, model);
  auto predictor = std::make_unique<Predictor>(std::move(model), options, others);
  predictor->place(devices_of(options.placement));
  predictor->pack(options.weights);
  return predictor;
}

std::unique_ptr<Predictor> load_predictor(const std::vector<std::string>& folders,
                                          const ModelOptions& options) {
  PairModel model = load_pair_model(folders.at(0));
  std::vector<std::shared_ptr<PairNetwork>> others;
  for (size_t i = 1; i < folders.size(); ++i) {
    const PairModel other = load_pair_model(folders[i]);
    if (!same_tokens(other.source_vocabulary, model.source_vocabulary) ||
        !same_tokens(other.target_vocabulary, model.target_vocabulary) ||
        other.text.target != model.text.target || other.text.pairs != model.text.pairs ||
        other.codecs.source.prompt != model.codecs.source.prompt ||
        !(other.text.target_scale == model.text.target_scale))
      fail(
          "{}: has other vocabularies or targets than the first model; an ensemble needs models "
          "trained on the same data",
          folders[i]);
    others.push_back(other.network);
    model.ensemble_source_limit =
        std::min(model.ensemble_source_limit, other.maximum_source_length());
  }
  // Input gradients must not compute weight gradients.
  for (const at::Tensor& weight : model.network->parameters()) weight.requires_grad_(false);
  return ready_predictor(std::move(model), options, others);
}

}  // namespace

SourceError::SourceError(size_t index, const std::string& reason)
    : Error(fmt::format("source {}: {}", index + 1, reason)), index_(index), reason_(reason) {}

Model::Model(const std::string& folder, const ModelOptions& options)
    : Model(load_predictor({folder}, options)) {}

Model::Model(PairModel model, const ModelOptions& options)
    : Model(ready_predictor(std::move(model), options)) {}

Model Model::ensemble(const std::vector<std::string>& folders, const ModelOptions& options) {
  if (folders.empty()) fail("[model] no models are given; name at least one folder");
  return Model(load_predictor(folders, options));
}

Model::Model(std::unique_ptr<Predictor> predictor) : predictor_(std::move(predictor)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

void Model::check(const SearchOptions& options) const {
  predictor_->check(options, /*has_prefixes=*/false);
}

void Model::answer_each(std::vector<Request> requests) const {
  predictor_->answer_each(std::move(requests));
}

void Model::answer_arriving(const Arrivals& arrivals) const {
  predictor_->answer_arriving(arrivals);
}

std::vector<Answer> Model::answer(const std::vector<std::string>& sources,
                                  const SearchOptions& options,
                                  const std::vector<std::string>& prefixes) const {
  return predictor_->answer(sources, options, prefixes);
}

std::vector<Answer> Model::answer(const std::vector<std::string>& sources) const {
  return answer(sources, search_options());
}

SearchOptions Model::search_options() const { return parts().decode; }

std::vector<std::string> Model::labels() const {
  std::vector<std::string> labels;
  const AnswerKind& kind = answer_kind();
  const Vocabulary& vocabulary = parts().target_vocabulary;
  if (kind.is_label() || kind.is_label_set())
    for (int64_t id = Vocabulary::unknown + 1; id < vocabulary.size(); ++id)
      labels.push_back(vocabulary.token(id));
  return labels;
}

std::vector<std::vector<TokenProbability>> Model::classify(
    const std::vector<std::string>& sources) const {
  if (labels().empty())
    fail("[model] a model of type {} has no labels; ask it for answers", type());
  const Vocabulary& vocabulary = parts().target_vocabulary;
  std::vector<std::vector<TokenProbability>> found;
  found.reserve(sources.size());
  for (const at::Tensor& logarithms : predictor_->first_steps(sources))
    found.push_back(logarithms.defined() ? most_probable(logarithms, Vocabulary::unknown + 1,
                                                         vocabulary.size(), vocabulary)
                                         : std::vector<TokenProbability>());
  return found;
}

std::vector<std::optional<double>> Model::numbers(const std::vector<std::string>& sources) const {
  if (answer_kind().has_probabilities())
    fail("[model] a model of type {} was not trained on numbers; ask it for answers", type());
  std::vector<std::optional<double>> numbers;
  numbers.reserve(sources.size());
  for (const Answer& answer : answer(sources, {}))
    numbers.push_back(answer.candidates.empty() ? std::nullopt : answer.best().number);
  return numbers;
}

PairCheck Model::label_check() const { return attend::label_check(parts().text, parts().config); }

void Model::check_labels(const std::vector<Example>& examples, const std::string& name,
                         const Tell& remark) const {
  const PairModel& model = parts();
  attend::check_labels(model, tokenise_examples(examples, model.codecs), name, remark);
}

std::vector<double> Model::log_probabilities(const std::vector<Example>& examples) const {
  return predictor_->log_probabilities(parts().encode(examples));
}

std::vector<std::vector<TokenProbability>> Model::fill(const std::string& text,
                                                       const std::string& mask,
                                                       int64_t maximum) const {
  if (!answer_kind().fills())
    fail("[model] a model of type {} does not fill in masks; train an encoder", type());
  if (mask.empty() || maximum < 1)
    fail("[fill] the mask is empty, or fewer than 1 token is requested");
  std::vector<int64_t> asked;
  const std::vector<int64_t> ids = masked_ids(parts(), text, mask, asked);
  if (static_cast<int64_t>(ids.size()) > maximum_source_length())
    fail("[fill] the text has {} tokens, over the {} that the model reads", ids.size(),
         maximum_source_length());
  std::vector<std::vector<TokenProbability>> found;
  if (asked.empty()) return found;
  found.reserve(asked.size());
  const at::Tensor steps = predictor_->steps(ids);
  for (const int64_t place : asked)
    found.push_back(most_probable(steps[place].to(at::kFloat), Vocabulary::unknown + 1, maximum,
                                  parts().target_vocabulary));
  return found;
}

std::string Model::prompt(const std::string& name) const {
  return text_prompts(parts()).text(name);
}

std::vector<std::string> Model::prompt_names() const {
  std::vector<std::string> names;
  for (const TextPrompt& prompt : text_prompts(parts()).rows) names.push_back(prompt.name);
  return names;
}

std::vector<Embedding> Model::embed(const std::vector<std::string>& sources) const {
  return embed(sources, prompt());
}

std::vector<Embedding> Model::embed(const std::vector<std::string>& sources,
                                    const std::string& prompt) const {
  std::vector<Embedding> embeddings;
  embeddings.reserve(sources.size());
  const std::vector<std::string> texts = prompted(sources, prompt);
  const int64_t skipped = unpooled_tokens(*this, prompt, text_prompts(parts()));
  for (EncodedText& text : predictor_->encodings(texts, skipped)) {
    Embedding& embedding = embeddings.emplace_back();
    embedding.tokens = std::move(text.tokens);
    embedding.truncated = text.truncated;
    embedding.error = std::move(text.error);
    if (!text.vectors.defined()) continue;
    if (!at::isfinite(text.vectors).all().item<bool>()) {
      constexpr const char* reason = "[embed] the model's vectors are not finite";
      if (!predictor_->skips_bad()) throw NotANumber(reason);
      embedding.error = NotANumber(reason).what();
      embedding.is_diverged = true;
      continue;
    }
    embedding.depth = text.vectors.size(1);
    embedding.vectors = numbers_of(text.vectors);
    if (text.whole.defined()) embedding.whole = numbers_of(text.whole);
  }
  return embeddings;
}

std::vector<SourceToken> Model::tokenise(const std::string& text) const {
  if (parts().text.source_kind() != nullptr) fail("[tokenise] the model's sources are not texts");
  const Vocabulary& vocabulary = parts().source_vocabulary;
  const TextCodec& codec = parts().codecs.source;
  SourceTokens names = codec.split_source(text);
  const int64_t count = std::ssize(names.names);
  const auto [before, between, after] = codec.margins(names.second < count);
  std::vector<SourceToken> tokens;
  tokens.reserve(names.names.size());
  for (std::string& name : names.names) {
    const int64_t i = std::ssize(tokens);
    SourceToken& token = tokens.emplace_back();
    token.id = codec.outer_id(name, vocabulary);
    token.is_known = codec.knows(name, vocabulary);
    token.is_special = i < before || i >= count - after ||
                       (i < names.second && i >= names.second - between && between > 0);
    token.is_second = i >= names.second;
    token.text = std::move(name);
  }
  return tokens;
}

std::vector<SourceToken> Model::tokens_read(const std::string& text) const {
  std::vector<SourceToken> tokens = tokenise(text);
  const std::vector<TokenSpan> places = parts().codecs.source.places(text);
  for (size_t i = 0; i < std::min(tokens.size(), places.size()); ++i) tokens[i].place = places[i];
  int64_t second = std::count_if(tokens.begin(), tokens.end(),
                                 [](const SourceToken& token) { return !token.is_second; });
  parts().truncate_source(tokens, second);
  return tokens;
}

std::vector<std::string> Model::source_texts(const std::vector<std::string>& tokens) const {
  return parts().codecs.source.texts(tokens);
}

std::vector<std::string> Model::answer_texts(const std::vector<std::string>& tokens) const {
  return parts().codecs.target.texts(tokens);
}

std::string Model::source_text(const std::vector<int64_t>& ids) const {
  const TextCodec& codec = parts().codecs.source;
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int64_t id : ids) tokens.push_back(codec.token_of(id, parts().source_vocabulary));
  std::string text = codec.join(tokens);
  if (parts().text.source_kind() != nullptr || codec.split(text) != tokens)
    fail("no text gives these tokens; send the text");
  return text;
}

std::string Model::decoded(const std::vector<int64_t>& ids) const {
  if (parts().text.source_kind() != nullptr) fail("[decode] the model's sources are not texts");
  const TextCodec& codec = parts().codecs.source;
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int64_t id : ids) tokens.push_back(codec.token_of(id, parts().source_vocabulary));
  return codec.join(tokens);
}

int64_t Model::threads() const { return predictor_->threads(); }

const std::string& Model::type() const { return parts().config.type; }

const TextConfig& Model::text() const { return parts().text; }

bool Model::attends() const { return parts().network->attends(); }

std::string Model::no_weights_reason() const {
  return attends() ? "" : parts().config.chosen().no_weights_reason();
}

const AnswerKind& Model::answer_kind() const { return parts().answer_kind(); }

std::string Model::pooling() const {
  return parts().config.chosen().takes_first_vector() ? "cls" : "mean";
}

bool Model::has_source_image() const {
  const SourceKind* kind = parts().text.source_kind();
  return kind != nullptr && kind->picture != nullptr;
}

int64_t Model::longest_answer(int64_t source_tokens, const SearchOptions& options) const {
  if (const int64_t length = answer_kind().length(source_tokens); length > 0) return length;
  return options.maximum_length > 0
             ? options.maximum_length
             : std::max(attend::longest_answer(source_tokens), options.minimum_length);
}

int64_t Model::maximum_source_length() const { return parts().maximum_source_length(); }

SourceImage Model::source_image(const std::string& source) const {
  const PairModel& model = parts();
  if (!has_source_image())
    fail("[model] a model of type {} here reads no images or sounds", type());
  at::Tensor frames = model.frame_reader()->read(source);
  model.truncate_frames(frames);
  const SourceShape shape = model.source_shape();
  const Image picture = model.text.source_kind()->picture(frames, model.text.frames);
  const auto* grid = shape.as<ImageForm>();
  return grid == nullptr ? SourceImage{picture, 1, frames.size(0)}
                         : SourceImage{picture, grid->rows, grid->columns};
}

const PairModel& Model::parts() const { return predictor_->model(); }

}  // namespace attend
