#include "attend/explain/explain_files.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "attend/base/error.h"
#include "attend/base/file_formats.h"
#include "attend/data/number_set.h"
#include "attend/explain/knock_out.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/shown.h"
#include "attend/explain/weight_grids.h"
#include "attend/files/npz.h"
#include "attend/pictures/graph_files.h"
#include "attend/pictures/label_track.h"
#include "attend/pictures/layer_graph.h"
#include "attend/pictures/map_page.h"
#include "attend/pictures/molecule_drawing.h"
#include "attend/pictures/points_drawing.h"
#include "attend/pictures/render.h"
#include "attend/pictures/source_panels.h"
#include "attend/text/molecule.h"

namespace attend {
namespace {

std::string maps_png(const Shown& shown) {
  if (shown.maps.size() > 1) return render_png(shown_svg(shown));
  const Alignment map = titled_maps(shown)[0];
  return shown.picture ? panels_png(map, *shown.picture) : alignment_png(map);
}

std::string maps_npz(const Shown& shown) {
  NamedTensors all;
  for (const Alignment& map : shown.maps) {
    std::string name = map.title.empty() ? "attention" : map.title;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; },
        '_');
    all[name] = tensor_of(map.weights);
    if (map.scores) all[name + "_scores"] = tensor_of(*map.scores);
  }
  return format_npz(all);
}

std::string maps_track(const Shown& shown) { return label_track(shown.maps[0]); }

// Map with one row to show in a drawing of the source.
const Alignment& one_row(const Shown& shown) {
  const Alignment& map = shown.maps[0];
  if (map.target.size() != 1)
    fail("a drawing shows the map of one label or number, and this map has {} rows",
         map.target.size());
  return map;
}

std::string title_of(const Alignment& map) {
  return fmt::format("{}{}{}", map.title, map.title.empty() ? "" : ": ", map.target[0]);
}

// End of each part in a text that contains the parts in order.
std::vector<size_t> ends_of(const std::vector<std::string>& parts, const std::string& text) {
  std::vector<size_t> ends;
  size_t end = 0;
  for (const std::string& part : parts) {
    const size_t begin = text.find(part, end);
    if (begin == std::string::npos)
      fail("{} is not a part of {}; a molecule is drawn only if tokens are parts of its SMILES",
           in_quotes(part), in_quotes(text));
    end = begin + part.size();
    ends.push_back(end);
  }
  return ends;
}

// Tokens of each atom: one, several (letters), or none if the source was truncated.
std::vector<std::vector<int64_t>> tokens_of_atoms(const Molecule& molecule,
                                                  const std::vector<std::string>& tokens,
                                                  const std::string& text) {
  std::vector<std::string> atoms;
  for (const Atom& atom : molecule.atoms) atoms.push_back(atom.text);
  const std::vector<size_t> atom_ends = ends_of(atoms, text), token_ends = ends_of(tokens, text);
  std::vector<std::vector<int64_t>> all(atoms.size());
  for (size_t atom = 0; atom < atoms.size(); ++atom)
    for (size_t token = 0; token < tokens.size(); ++token)
      if (token_ends[token] > atom_ends[atom] - atoms[atom].size() &&
          token_ends[token] - tokens[token].size() < atom_ends[atom])
        all[atom].push_back(static_cast<int64_t>(token));
  return all;
}

// Mean over the rows of their weights on the columns.
double weight_between(const WeightGrid& weights, const std::vector<int64_t>& rows,
                      const std::vector<int64_t>& columns) {
  double sum = 0;
  for (const int64_t row : rows)
    for (const int64_t column : columns) sum += weights.at(row, column);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

// In a map of an answer an atom shows the weights of its tokens. In a map of attention within the
// source it shows its weight on itself, and each end of a bond shows the weight from its atom to
// the other one.
std::string molecule_drawing(const Shown& shown) {
  const bool within = shown.is_one_sequence;
  const Alignment& map = within ? shown.maps[0] : one_row(shown);
  const Molecule molecule = read_molecule(shown.text);
  const auto tokens = tokens_of_atoms(molecule, map.source, shown.text);
  MoleculeDrawing drawing;
  drawing.title = within ? map.title : title_of(map);
  for (size_t i = 0; i < tokens.size(); ++i)
    drawing.atoms.push_back(
        {molecule.atoms[i].text,
         weight_between(map.weights, within ? tokens[i] : std::vector<int64_t>{0}, tokens[i])});
  for (const Bond& bond : molecule.bonds) {
    drawing.bonds.push_back(
        {bond.first, bond.second, lines_of(bond.type), bond.type == BondType::aromatic});
    if (!within) continue;
    const auto &first = tokens[static_cast<size_t>(bond.first)],
               &second = tokens[static_cast<size_t>(bond.second)];
    drawing.bonds.back().first_weight = weight_between(map.weights, first, second);
    drawing.bonds.back().second_weight = weight_between(map.weights, second, first);
  }
  return molecule_svg(drawing);
}

std::string molecule_png(const Shown& shown) { return render_png(molecule_drawing(shown)); }

// Requires a source of points in a plane.
std::string points_drawing(const Shown& shown) {
  const Alignment& map = one_row(shown);
  PointsDrawing drawing;
  drawing.title = title_of(map);
  for (size_t i = 0; i < map.source.size(); ++i) {
    const NumberSet point = parse_number_set(map.source[i]);
    if (point.numbers.size() != 2)
      fail("{} is not a point of a plane; give two numbers separated by a comma",
           in_quotes(map.source[i]));
    drawing.points.push_back(
        {point.numbers[0], point.numbers[1], map.weights.at(0, static_cast<int64_t>(i))});
  }
  return points_svg(drawing);
}

std::string points_png(const Shown& shown) { return render_png(points_drawing(shown)); }

std::string method_pharaoh(const Shown& shown) {
  if (shown.methods.empty()) fail("alignments of Pharaoh need a method; take the view alignment");
  return pharaoh(shown.methods[0].scores) + '\n';
}

AttentionGraph map_graph(const Shown& shown) {
  const Alignment& map = shown.maps[0];
  if (!shown.is_one_sequence)
    fail(
        "{} attends to another sequence; a graph shows one sequence, take the view heads and a "
        "layer of self-attention",
        map.title.empty() ? "the answer" : map.title);
  return attention_graph(map.source, {map.weights});
}

std::string layers_png(const LayerGraph& graph) { return render_png(layer_graph_svg(graph)); }

std::string page_html(const ExplanationPage& page) {
  std::ostringstream out;
  write_page(out, page);
  return out.str();
}

std::string knock_out_line(const KnockOut& effect) { return knock_out_json(effect) + '\n'; }

constexpr const char *svg_type = "image/svg+xml", *png_type = "image/png",
                     *json_type = "application/json", *text_type = "text/plain; charset=utf-8";

// Data of a page, for programs that draw it; not a file of the program.
const ExplainFile& page_data() {
  static const ExplainFile row = {
      .suffix = ".page", .note = "", .media_type = json_type, .page = page_json};
  return row;
}

}  // namespace

const std::vector<ExplainFile>& explain_files() {
  static const std::vector<ExplainFile> table = [] {
    std::vector<ExplainFile> rows = {
        {".html", " (all methods, tested, and all layers)", "text/html; charset=utf-8", nullptr,
         nullptr, nullptr, page_html, /*always_tested=*/true},
        {".molecule.svg", " (SMILES, its atoms coloured, its bonds by --view heads)", svg_type,
         molecule_drawing},
        {".molecule.png", "", png_type, molecule_png},
        {".points.svg", " (a set of points of a plane)", svg_type, points_drawing},
        {".points.png", "", png_type, points_png},
        {".svg", "", svg_type, shown_svg, layer_graph_svg},
        {".png", "", png_type, maps_png, layers_png},
        {".json", "", json_type, shown_json, nullptr, knock_out_line, nullptr,
         /*always_tested=*/false, /*has_objects=*/true},
        {".npz", "", "application/zip", maps_npz},
        {".align", " (Pharaoh, of --view alignment)", text_type, method_pharaoh},
        {".txt", " (a label below each character)", text_type, maps_track}};
    for (const GraphFile& file : graph_files())
      rows.push_back(
          {file.suffix, file.note, file.media_type,
           [&file](const Shown& shown) { return file.write(map_graph(shown)); },
           [&file](const LayerGraph& graph) { return file.write(with_named_nodes(graph)); }});
    return rows;
  }();
  return table;
}

std::string listed_explain_files() {
  return listed_formats(explain_files(), [](const ExplainFile&) { return true; });
}

std::string listed_layer_graph_files() {
  return listed_formats(explain_files(), [](const ExplainFile& file) { return bool{file.graph}; });
}

EnumNames names_of(ExplainFormat) {
  EnumNames names;
  names.reserve(explain_files().size() + 1);
  for (const ExplainFile& file : explain_files()) names.emplace_back(file.suffix.substr(1));
  names.emplace_back(page_data().suffix.substr(1));
  return names;
}

const ExplainFile& file_of(ExplainFormat format) {
  const auto row = static_cast<size_t>(format);
  return row < explain_files().size() ? explain_files()[row] : page_data();
}

}  // namespace attend
