#include "attend/mechanisms/mechanism_pictures.h"

#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/files/tensor_json.h"
#include "attend/mechanisms/mechanism_fit.h"
#include "attend/mechanisms/mechanism_pages.h"
#include "attend/pictures/thumbnail.h"

namespace attend {
namespace {

using nlohmann::json;

const json& field(const json& object, const char* name, const std::string& path) {
  const auto found = object.find(name);
  if (found == object.end())
    fail("{}: has no \"{}\"; tools/mechanisms_pair.py writes it", path, name);
  return *found;
}

at::Tensor matrix(const json& object, const char* name, const std::string& path) {
  return parse_tensor_json(field(object, name, path).dump(), path).to(at::kFloat);
}

SentencePair read_pair(const std::string& path) {
  const json object = json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    fail("{}: is not a JSON object; tools/mechanisms_pair.py writes one", path);
  SentencePair pair;
  for (const auto& [name, words] :
       {std::pair("source", &pair.source), std::pair("target", &pair.target)}) {
    const json& list = field(object, name, path);
    for (const json& word : list) {
      if (!word.is_string()) fail("{}: \"{}\" holds {}, not words", path, name, word.type_name());
      words->push_back(word.get<std::string>());
    }
  }
  pair.annotations = matrix(object, "annotations", path);
  pair.states = matrix(object, "states", path);
  pair.weights = matrix(object, "weights", path);
  const auto source = static_cast<int64_t>(pair.source.size());
  const auto target = static_cast<int64_t>(pair.target.size());
  if (source < 2 || target < 2 || pair.annotations.dim() != 2 || pair.states.dim() != 2 ||
      pair.annotations.size(0) != source || pair.states.size(0) != target ||
      pair.states.size(1) != pair.annotations.size(1) ||
      pair.weights.sizes() != at::IntArrayRef({target, source}))
    fail("{}: needs annotations [{}, D], states [{}, D] and weights [{}, {}] of its words", path,
         source, target, target, source);
  return pair;
}

}  // namespace

size_t draw_mechanisms(const std::string& folder) {
  const SentencePair pair = read_pair(folder + "/pair.json");
  for (const Mechanism& row : mechanism_table()) {
    const FittedMap map = fitted_map(row, pair);
    const at::Tensor weights = map.weights.to(at::kDouble).contiguous();
    const double* values = weights.data_ptr<double>();
    const WeightGrid grid{weights.size(0), weights.size(1), {values, values + weights.numel()}};
    write_file(
        fmt::format("{}/{}.svg", folder, row.name),
        thumbnail_svg({map.keys, map.queries, grid, fmt::format("weights of {}", row.name)}));
  }
  write_file(folder + "/legend.svg", thumbnail_legend_svg());
  write_file(folder + "/family.svg", mechanisms_family_svg());
  return mechanism_table().size();
}

}  // namespace attend
