#include "attend/models/pair_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/models/model_size.h"
#include "attend/models/parameters_file.h"

namespace attend {
namespace {

Settings all_settings(TextConfig& text, ModelConfig& model) {
  Settings settings = text.settings();
  append(settings, model.settings());
  return settings;
}

// The tokens that occur, and an alphabet of which every token may.
Vocabulary make_vocabulary(WordCounts counts, const std::vector<std::string>& alphabet,
                           int64_t minimum_count) {
  for (const std::string& token : alphabet) ++counts[token];
  return Vocabulary::build_from(counts, alphabet.empty() ? minimum_count : 1);
}

// The first of them, as they are many where somebody takes answers for labels.
template <class Wanted>
std::string shown_tokens(const Vocabulary& vocabulary, Wanted wanted) {
  constexpr size_t most = 8;
  std::vector<std::string> names;
  names.reserve(most);
  for (int64_t id = Vocabulary::unknown + 1; id < vocabulary.size(); ++id) {
    if (!wanted(vocabulary.token(id))) continue;
    if (names.size() == most) return fmt::format("{}, ...", fmt::join(names, ", "));
    names.push_back(in_quotes(vocabulary.token(id)));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string shown_labels(const Vocabulary& labels) {
  return shown_tokens(labels, [](const std::string&) { return true; });
}

// The tokens of each line of a text: those of all of it at once would take many times its size.
template <class F>
void for_each_line(const std::string& text, const TextCodec& codec, F f) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    f(codec.split_lines(std::string_view(text).substr(begin, end - begin)));
    begin = end;
  }
}

std::vector<int64_t> looked_up(std::span<const int32_t> numbers, const std::vector<int64_t>& ids) {
  std::vector<int64_t> result;
  result.reserve(numbers.size());
  for (const int32_t number : numbers) result.push_back(ids[static_cast<size_t>(number)]);
  return result;
}

// A network of up to twice the size is refused later, by the names of its tensors.
void check_size(const PairModel& model, const std::string& path) {
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  const int64_t wanted = parameter_bytes(model);
  if (wanted / 2 > bytes)
    fail("{}: has {} bytes; config.toml and vocabularies describe a model of {}: {}", path, bytes,
         wanted, largest_part(model));
}

std::string weights_path(const std::string& folder) { return folder + "/weights.safetensors"; }

// The model without its network.
PairModel read_description(const std::string& folder) {
  if (!std::filesystem::exists(folder))
    fail("{}: no such model folder; attend train --out {} makes one", folder, folder);
  if (!std::filesystem::exists(folder + "/config.toml"))
    fail("{}: holds no config.toml, so it is no model folder; make one with attend train --out",
         folder);
  PairModel model;
  const TomlFile file(folder + "/config.toml");
  file.read_key(model.config.type_setting());
  file.read_key(model.text.source_units_setting());
  file.read(all_settings(model.text, model.config));
  model.text = with_codes_in(folder, model.text);
  model.codecs = make_codecs(model.text);
  model.source_vocabulary = Vocabulary::load(folder + "/source.vocab");
  model.target_vocabulary = Vocabulary::load(folder + "/target.vocab");
  // Before a network is made: its size is bounded by the weights that are there, or by the memory.
  if (std::filesystem::exists(weights_path(folder)))
    check_size(model, weights_path(folder));
  else
    check_memory(model);
  return model;
}

}  // namespace

std::shared_ptr<PairNetwork> PairModel::make_network() const {
  return config.chosen().make_network(source_shape(), target_vocabulary.size());
}

SourceShape PairModel::source_shape() const {
  const FrameConfig& frames = text.frames;
  if (!text.reads_frames()) return {source_vocabulary.size()};
  if (text.reads_images()) return {frames.patch * frames.patch, {frames.rows(), frames.columns()}};
  return {frames.stack * frames.mel_bands, {}};
}

at::Tensor PairModel::source_frames(const std::string& name, FrameReader& reader, bool* cut) const {
  const at::Tensor frames = reader.read(name);
  if (cut != nullptr) *cut = frames.size(0) > maximum_source_length();
  return frames.slice(0, 0, maximum_source_length());
}

std::vector<int64_t> PairModel::source_ids(const std::vector<std::string>& tokens) const {
  std::vector<int64_t> ids = source_vocabulary.encode(tokens);
  if (!ids.empty()) check_language(tokens[0], ids[0]);
  return ids;
}

void PairModel::check_language(const std::string& token, int64_t id) const {
  if (text.language_token && id == Vocabulary::unknown)
    fail("language {} was not in training; there are {}", in_quotes(token),
         shown_tokens(source_vocabulary, is_language_token));
}

std::string PairModel::target_text(const std::vector<int64_t>& ids) const {
  return codecs.target.join(target_vocabulary.decode(ids));
}

std::vector<EncodedPair> PairModel::encode(const TokenisedExamples& tokenised, int64_t* cut) const {
  const std::vector<int64_t> sources = source_vocabulary.encode(tokenised.sources.tokens());
  const std::vector<int64_t> targets = target_vocabulary.encode(tokenised.targets.tokens());
  std::vector<EncodedPair> pairs;
  pairs.reserve(static_cast<size_t>(tokenised.targets.size()));
  FrameReader reader = frame_reader();
  for (size_t i = 0; i < tokenised.examples.size(); ++i) {
    const Example& example = tokenised.examples[i];
    EncodedPair pair;
    if (text.reads_frames()) {
      bool is_cut = false;
      pair.frames = source_frames(example.source, reader, &is_cut);
      if (cut != nullptr) *cut += is_cut ? 1 : 0;
    } else {
      const std::span<const int32_t> numbers = tokenised.sources[static_cast<int64_t>(i)];
      pair.source = looked_up(numbers, sources);
      if (!numbers.empty())
        check_language(tokenised.sources.tokens()[static_cast<size_t>(numbers[0])], pair.source[0]);
      truncate_source(pair.source);
    }
    pair.no_eos = config.answer_length(pair.source_length()) > 0;
    for (size_t j = 0; j < example.targets.size(); ++j) {
      const auto target = static_cast<int64_t>(pairs.size());
      pair.target = config.fills() ? pair.source : looked_up(tokenised.targets[target], targets);
      pairs.push_back(pair);
    }
  }
  return pairs;
}

std::vector<EncodedPair> PairModel::encode(const std::vector<Example>& examples) const {
  return encode(tokenise_examples(examples, codecs, text.reads_frames()));
}

std::vector<int64_t> PairModel::encode_text(const std::string& source) const {
  std::vector<int64_t> ids;
  ids.reserve(source.size());
  for_each_line(source, codecs.target, [&](const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) ids.push_back(target_vocabulary.id(token));
  });
  return ids;
}

// Twice the same text is two occurrences, as for a source with two targets.
void TokenCounts::add(const Example& example, const TextCodecs& codecs) {
  for (const std::string& token : codecs.source.split(example.source)) ++source[token];
  for (const std::string& text : example.targets)
    for (const std::string& token : codecs.target.split(text)) ++target[token];
}

void TokenCounts::add_text(const std::string& text, const TextCodec& codec) {
  for_each_line(text, codec, [&](const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) ++target[token];
  });
}

PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const TokenisedExamples& tokenised) {
  TextConfig sized = text;
  if (text.reads_images()) take_image_size(tokenised.examples, sized.frames);
  return make_pair_model(sized, model,
                         TokenCounts{tokenised.sources.counts(), tokenised.targets.counts()});
}

PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const std::vector<Example>& examples) {
  return make_pair_model(text, model,
                         tokenise_examples(examples, make_codecs(text), text.reads_frames()));
}

PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const TokenCounts& counts) {
  // As many tokens on both sides may be others.
  if (model.chosen().wants_joint_vocabulary() && !text.joint_vocabulary)
    fail(
        "model.tied is all, or model.copy true, which takes one vocabulary; set "
        "data.joint_vocabulary = true");
  if (model.row().learns_from_text() && text.source_units != text.target_units)
    fail(
        "model.type is {}, whose answers are made of its source's tokens; set data.source_units "
        "and data.target_units alike",
        model.type);
  if (model.continues() && !text.joint_vocabulary)
    fail("model.type is {}, which goes on with its source; set data.joint_vocabulary = true",
         model.type);
  PairModel result{text, make_codecs(text), model, {}, {}, nullptr};
  const auto& [source, target] = result.codecs;
  // Of images and sounds those are names.
  const WordCounts sources = text.reads_frames() ? WordCounts{} : counts.source;
  if (text.joint_vocabulary) {
    WordCounts both = sources;
    for (const auto& [token, count] : counts.target) both[token] += count;
    // Of the alphabets at least one is empty, or they are the same.
    result.source_vocabulary = result.target_vocabulary = make_vocabulary(
        std::move(both), std::max(source.alphabet(), target.alphabet()), text.minimum_count);
  } else {
    result.source_vocabulary = make_vocabulary(sources, source.alphabet(), text.minimum_count);
    // A rare label is a label: there is no unknown one.
    result.target_vocabulary =
        model.fills() ? result.source_vocabulary
                      : make_vocabulary(counts.target, target.alphabet(),
                                        model.answers_labels() ? 1 : text.minimum_count);
  }
  check_memory(result);
  result.network = result.make_network();
  return result;
}

void check_labels(const PairModel& model, const TokenisedExamples& tokenised,
                  const std::string& name) {
  if (!model.config.answers_labels()) return;
  const Vocabulary& labels = model.target_vocabulary;
  const std::vector<int64_t> ids = labels.encode(tokenised.targets.tokens());
  int64_t next = 0;
  for (const Example& example : tokenised.examples) {
    for (const std::string& target : example.targets) {
      const auto tokens = tokenised.targets[next++];
      if (tokens.size() != 1)
        fail(
            "{}: {} is {} tokens of data.target_units = {}; a classifier's target is one label "
            "(line: the whole target)",
            name, in_quotes(target), tokens.size(), in_quotes(model.text.target_units));
      if (ids[static_cast<size_t>(tokens[0])] == Vocabulary::unknown)
        fail("{}: label {} of {} was not in training, whose labels are {}", name, in_quotes(target),
             in_quotes(example.source), shown_labels(labels));
    }
  }
}

void save_description(const PairModel& model, const std::string& folder) {
  // The names alone: the folder may move.
  TextConfig text = with_codes_in(".", model.text);
  ModelConfig network = model.config;
  save_codes(model.codecs, model.text, folder);
  model.source_vocabulary.save(folder + "/source.vocab");
  model.target_vocabulary.save(folder + "/target.vocab");
  write_file(folder + "/config.toml", to_toml(all_settings(text, network), /*with_help=*/true));
}

PairModel load_description(const std::string& folder) {
  PairModel model = read_description(folder);
  model.network = model.make_network();
  return model;
}

PairModel load_pair_model(const std::string& folder) {
  PairModel model = read_description(folder);
  const std::string path = weights_path(folder);
  if (!std::filesystem::exists(path))
    fail("{}: no weights yet; train until the first validation: attend train --out {} --resume",
         path, folder);
  const TensorFile file = read_weights(path);
  check_weights(*outline(model), file, path);
  model.network = model.make_network();
  copy_weights(file, *model.network);
  model.network->eval();
  return model;
}

}  // namespace attend
