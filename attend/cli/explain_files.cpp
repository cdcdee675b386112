#include "attend/cli/explain_files.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/cli/file_formats.h"
#include "attend/cli/graph_files.h"
#include "attend/data/molecule.h"
#include "attend/data/npz.h"
#include "attend/data/number_set.h"
#include "attend/explain/explanation_json.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/weight_grids.h"
#include "attend/pictures/label_track.h"
#include "attend/pictures/molecule_drawing.h"
#include "attend/pictures/render.h"
#include "attend/pictures/scatter.h"
#include "attend/pictures/source_panels.h"
#include "attend/pictures/thumbnail.h"

namespace attend {
namespace {

std::string thumbnails(const Shown& shown) {
  constexpr int64_t columns = 4;
  return thumbnails_svg(shown.maps, columns);
}

std::string maps_svg(const Shown& shown) {
  if (shown.maps.size() > 1) return thumbnails(shown);
  const Alignment& map = shown.maps[0];
  return shown.picture ? panels_svg(map, *shown.picture) : alignment_svg(map);
}

std::string maps_png(const Shown& shown) {
  if (shown.maps.size() > 1) return render_png(thumbnails(shown));
  const Alignment& map = shown.maps[0];
  return shown.picture ? panels_png(map, *shown.picture) : alignment_png(map);
}

std::string maps_npz(const Shown& shown) {
  NamedTensors all;
  for (const Alignment& map : shown.maps) {
    std::string name = map.title.empty() ? "attention" : map.title;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ' ' || c == ','; }, '_');
    all[name] = tensor_of(map.weights);
    if (map.scores) all[name + "_scores"] = tensor_of(*map.scores);
  }
  return format_npz(all);
}

std::string maps_track(const Shown& shown) { return label_track(shown.maps[0]); }

// The tokens of the source together are SMILES. An atom weighs as much as its tokens do.
std::string molecule_drawing(const Shown& shown) {
  const Alignment& map = shown.maps[0];
  if (map.target.size() != 1)
    fail("a molecule shows where one label or number comes from, and this map has {} rows",
         map.target.size());
  std::string text;
  std::vector<size_t> token_of;  // of each byte
  for (size_t token = 0; token < map.source.size(); ++token) {
    text += map.source[token];
    token_of.resize(text.size(), token);
  }
  const Molecule molecule = read_molecule(text);
  MoleculeDrawing drawing;
  drawing.title = fmt::format("{}{}{}", map.title, map.title.empty() ? "" : ": ", map.target[0]);
  size_t place = 0;
  for (const Atom& atom : molecule.atoms) {
    place = text.find(atom.text, place);
    const size_t first = token_of[place];
    place += atom.text.size();
    double weight = 0;
    for (size_t token = first; token <= token_of[place - 1]; ++token)
      weight += map.weights.at(0, static_cast<int64_t>(token));
    drawing.atoms.push_back({atom.text, weight});
  }
  for (const Bond& bond : molecule.bonds) {
    const bool is_aromatic = bond.type == BondType::aromatic;
    drawing.bonds.push_back({bond.first, bond.second,
                             is_aromatic ? 1 : static_cast<int64_t>(bond.type) + 1, is_aromatic});
  }
  return molecule_svg(drawing);
}

std::string molecule_png(const Shown& shown) { return render_png(molecule_drawing(shown)); }

// The tokens of the source are elements of a set, of one or two numbers.
std::string scattered_points(const Shown& shown) {
  const Alignment& map = shown.maps[0];
  if (map.target.size() != 1)
    fail("points show where one label or number comes from, and this map has {} rows",
         map.target.size());
  Scatter scatter;
  scatter.title = fmt::format("{}{}{}", map.title, map.title.empty() ? "" : ": ", map.target[0]);
  for (size_t i = 0; i < map.source.size(); ++i) {
    const NumberSet element = parse_number_set(map.source[i]);
    if (element.depth > 2)
      fail("element {} has {} numbers; points have two, or one", in_quotes(map.source[i]),
           element.depth);
    scatter.points.push_back({element.numbers[0], element.depth > 1 ? element.numbers[1] : 0,
                              map.source[i], map.weights.at(0, static_cast<int64_t>(i))});
  }
  return scatter_svg(scatter);
}

std::string scattered_png(const Shown& shown) { return render_png(scattered_points(shown)); }

std::string method_pharaoh(const Shown& shown) {
  if (shown.methods.empty()) fail("alignments of Pharaoh are of a method; take --view alignment");
  return pharaoh(shown.methods[0].scores) + '\n';
}

AttentionGraph map_graph(const Shown& shown) {
  const Alignment& map = shown.maps[0];
  if (!shown.of_one_sequence)
    fail(
        "{} looks at other tokens than its own; a graph is of one sequence, take --view heads and "
        "a --layer of self-attention",
        map.title.empty() ? "the answer" : map.title);
  return attention_graph(map.source, {map.weights});
}

std::string layers_png(const LayerGraph& graph) { return render_png(layer_graph_svg(graph)); }

bool takes_graph(const ExplainFile& file) { return file.graph != nullptr; }

}  // namespace

const std::vector<ExplainFile>& explain_files() {
  static const std::vector<ExplainFile> table = [] {
    std::vector<ExplainFile> rows = {
        {".html", " (all methods, tested, and all layers)", nullptr, nullptr, /*page=*/true},
        {".molecule.svg", " (SMILES, its atoms coloured)", molecule_drawing, nullptr},
        {".molecule.png", "", molecule_png, nullptr},
        {".points.svg", " (elements of a set as points, coloured)", scattered_points, nullptr},
        {".points.png", "", scattered_png, nullptr},
        {".svg", "", maps_svg, layer_graph_svg},
        {".png", "", maps_png, layers_png},
        {".json", "", shown_json, nullptr},
        {".npz", "", maps_npz, nullptr},
        {".align", " (Pharaoh, of --view alignment)", method_pharaoh, nullptr},
        {".txt", " (a label below each character)", maps_track, nullptr}};
    for (const GraphFile& file : graph_files())
      rows.push_back(
          {file.suffix, file.note,
           [&file](const Shown& shown) { return file.write(map_graph(shown)); },
           [&file](const LayerGraph& graph) { return file.write(with_named_nodes(graph)); }});
    return rows;
  }();
  return table;
}

std::string listed_explain_files() {
  return listed_formats(explain_files(), [](const ExplainFile&) { return true; });
}

std::string listed_layer_graph_files() { return listed_formats(explain_files(), takes_graph); }

std::string explain_file(const std::string& path, const Shown& shown) {
  const ExplainFile* file = format_of(explain_files(), path);
  if (shown.graph) {
    if (!file || !takes_graph(*file))
      fail("--out {}: a graph's name must end in {}", path, listed_layer_graph_files());
    return file->graph(*shown.graph);
  }
  if (!file || !file->maps) fail("--out {}: the name must end in {}", path, listed_explain_files());
  try {
    return file->maps(shown);
  } catch (const Error& error) {
    fail("--out {}: {}", path, error.what());
  }
}

std::string shown_json(const Shown& shown) {
  std::string lines;
  for (size_t i = 0; i < shown.maps.size(); ++i) {
    const bool tested = i < shown.methods.size();
    lines += alignment_json(shown.maps[i],
                            tested ? shown.methods[i].card : std::vector<EvidenceFigure>{}) +
             '\n';
  }
  return lines;
}

}  // namespace attend
