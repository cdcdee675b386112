#include "attend/models/pair_model.h"

#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/models/weights.h"

namespace attend {
namespace {

Settings all_settings(TextConfig& text, Seq2SeqConfig& model) {
  Settings settings = text.settings();
  for (Setting& setting : model.settings()) settings.push_back(std::move(setting));
  return settings;
}

// Twice the same text is two occurrences, as for a source with two targets.
std::vector<std::vector<std::string>> split_all(const std::vector<Example>& examples, Units units,
                                                bool sources) {
  std::vector<std::vector<std::string>> sequences;
  for (const Example& example : examples) {
    if (sources) sequences.push_back(split_units(example.source, units));
    if (sources) continue;
    for (const std::string& target : example.targets)
      sequences.push_back(split_units(target, units));
  }
  return sequences;
}

// A network far larger than its weights would exhaust memory before the shapes could be compared.
// What is counted here, embeddings and one matrix of the readout, is less than any network has.
void check_size(const PairModel& model, const std::string& path) {
  const int64_t hidden = model.model.hidden;
  const int64_t symbols = model.source_vocabulary.size() + model.target_vocabulary.size();
  const int64_t least = 4 * (model.model.embedding * symbols + 4 * hidden * hidden);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  if (bytes < least)
    fail("{}: has {} bytes; config.toml and vocabularies describe a model of over {}", path, bytes,
         least);
}

// The model without its network.
PairModel read_description(const std::string& folder) {
  if (!std::filesystem::exists(folder)) fail("{}: no such model folder", folder);
  if (!std::filesystem::exists(folder + "/config.toml"))
    fail("{}: holds no config.toml, so it is no model folder; make one with attend train --out",
         folder);
  PairModel model;
  read_toml(all_settings(model.text, model.model), folder + "/config.toml");
  model.source_vocabulary = Vocabulary::load(folder + "/source.vocab");
  model.target_vocabulary = Vocabulary::load(folder + "/target.vocab");
  return model;
}

}  // namespace

Settings TextConfig::settings() {
  const std::vector<std::string> units = {"char", "space"};
  return {
      {"data.source_units", &source_units, "what a symbol of the source is", {}, {}, units},
      {"data.target_units", &target_units, "what a symbol of the target is", {}, {}, units},
      {"data.minimum_count", &minimum_count, "rarer symbols are treated as unknown", 1, 1e9},
  };
}

std::shared_ptr<PairNetwork> PairModel::make_network() const {
  return std::make_shared<Seq2Seq>(model, source_vocabulary.size(), target_vocabulary.size());
}

std::vector<std::string> PairModel::source_symbols(const std::string& source) const {
  auto symbols = split_units(source, parse_units(text.source_units));
  if (static_cast<int64_t>(symbols.size()) > model.maximum_source_length)
    symbols.resize(static_cast<size_t>(model.maximum_source_length));
  return symbols;
}

std::string PairModel::target_text(const std::vector<int64_t>& ids) const {
  return join_units(target_vocabulary.decode(ids), parse_units(text.target_units));
}

std::vector<EncodedPair> PairModel::encode(const std::vector<Example>& examples) const {
  std::vector<EncodedPair> pairs;
  const Units units = parse_units(text.target_units);
  for (const Example& example : examples) {
    const auto source = source_vocabulary.encode(source_symbols(example.source));
    for (const std::string& target : example.targets)
      pairs.push_back({source, target_vocabulary.encode(split_units(target, units))});
  }
  return pairs;
}

PairModel make_pair_model(const TextConfig& text, const Seq2SeqConfig& model,
                          const std::vector<Example>& examples) {
  PairModel result{text, model, {}, {}, nullptr};
  result.source_vocabulary = Vocabulary::build(
      split_all(examples, parse_units(text.source_units), true), text.minimum_count);
  result.target_vocabulary = Vocabulary::build(
      split_all(examples, parse_units(text.target_units), false), text.minimum_count);
  result.network = result.make_network();
  return result;
}

void save_description(const PairModel& model, const std::string& folder) {
  TextConfig text = model.text;
  Seq2SeqConfig network = model.model;
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
  const std::string path = folder + "/weights.safetensors";
  if (!std::filesystem::exists(path))
    fail("{}: no weights yet; train until the first validation: attend train --out {} --resume",
         path, folder);
  check_size(model, path);
  model.network = model.make_network();
  load_weights(*model.network, path);
  model.network->eval();
  return model;
}

}  // namespace attend
