#include "attend/models/model_folder.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/data_format.h"
#include "attend/data/node_graph.h"
#include "attend/models/model_size.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/parameters_file.h"

namespace attend {
namespace {

Setting format_setting(int64_t& format) {
  return {"format", &format, "format version of this file; 1 if missing", 1};
}

// The table `decode`.
Settings decode_settings(SearchOptions& decode) {
  Settings settings = decode.folder_settings();
  for (Setting& setting : settings) setting.key = "decode." + setting.key;
  return settings;
}

Settings all_settings(TextConfig& text, ModelConfig& model, SearchOptions& decode) {
  Settings settings = text.settings();
  append(settings, model.settings());
  append(settings, decode_settings(decode));
  return settings;
}

// This catches only large differences. A network up to twice the size fails later, with tensor
// names in the message.
void check_size(const PairModel& model, const std::string& path) {
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  const int64_t wanted = parameter_bytes(model);
  if (wanted / 2 > bytes)
    fail("{}: has {} bytes; config.toml and vocabularies describe a model of {}: {}", path, bytes,
         wanted, largest_part(model));
}

std::string graph_path(const std::string& folder) { return folder + "/graph.safetensors"; }

std::string weights_path(const std::string& folder) { return folder + "/weights.safetensors"; }

PairModel read_description(const std::string& folder) {
  if (!std::filesystem::exists(folder))
    fail("{}: no such model folder; attend train --out {} makes one", folder, folder);
  if (!std::filesystem::exists(folder + "/config.toml"))
    fail("{}: holds no config.toml, so it is not a model folder; make one with attend train --out",
         folder);
  PairModel model;
  const TomlFile file(folder + "/config.toml");
  check_format(file, folder + "/config.toml");
  file.read_key(model.config.type_setting());
  model.text = model.config.row().text;
  file.read_key(model.text.format_setting());
  file.read_key(model.text.source_units_setting());
  file.read_key(model.text.target_setting());
  file.read_key(model.text.pairs_setting());
  read_config(file, all_settings(model.text, model.config, model.decode));
  model.answer_kind().check_stored(model.text, model.config.type, folder + "/config.toml");
  model.text = with_codes_in(folder, model.text);
  model.codecs = make_codecs(model.text);
  model.source_vocabulary = Vocabulary::load(folder + "/source.vocab");
  model.target_vocabulary = Vocabulary::load(folder + "/target.vocab");
  if (model.text.format_row().has_graph)
    model.graph = std::make_shared<NodeGraph>(
        load_graph(graph_path(folder), model.source_vocabulary.size() - Vocabulary::unknown - 1));
  // Checked before making a network, to limit its size by the stored weights or by the memory.
  if (std::filesystem::exists(weights_path(folder)))
    check_size(model, weights_path(folder));
  else
    check_memory(model);
  return model;
}

}  // namespace

void check_format(const TomlFile& file, const std::string& path) {
  int64_t format = config_format;
  file.read_key(format_setting(format));
  if (format > config_format)
    fail("{}: format is {}, and this attend reads formats up to {}; take a newer attend", path,
         format, config_format);
}

void read_config(const TomlFile& file, Settings settings) {
  int64_t format = config_format;
  settings.push_back(format_setting(format));
  file.read(settings);
}

void save_description(const PairModel& model, const std::string& folder) {
  // Names without the folder, because the folder may move.
  TextConfig text = with_codes_in(".", model.text);
  ModelConfig network = model.config;
  save_codes(model.codecs, model.text, folder);
  model.source_vocabulary.save(folder + "/source.vocab");
  model.target_vocabulary.save(folder + "/target.vocab");
  if (model.graph != nullptr) save_graph(*model.graph, graph_path(folder));
  int64_t format = config_format;
  Settings settings = {format_setting(format)};
  append(settings, text.settings());
  append(settings, network.settings());
  SearchOptions decode = model.decode;
  if (decode != SearchOptions{}) append(settings, decode_settings(decode));
  write_file(folder + "/config.toml", to_toml(settings, /*with_help=*/true));
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
  const TensorFile file = read_safetensors(path);
  check_weights(*outline(model), file, path);
  model.network = model.make_network();
  copy_weights(file, *model.network);
  model.network->eval();
  return model;
}

}  // namespace attend
