#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/explain/answer_page.h"
#include "attend/explain/head_patterns.h"
#include "attend/explain/show_options.h"
#include "attend/explain/shown_sum.h"
#include "attend/pictures/alignment.h"
#include "attend/pictures/layer_graph.h"
#include "attend/pictures/source_picture.h"

namespace attend {

// Maps to print or draw: one of a method, or one per head.
struct Shown {
  std::vector<Alignment> maps = {};
  bool is_one_sequence = false;            // rows and columns of the first map are one sequence
  std::vector<TestedMethod> methods = {};  // methods of the first maps, in their order
  // Per map of a head; without shares if the head is not of self-attention.
  std::vector<HeadPatterns> patterns = {};
  std::string text = {};  // the source as given
  std::optional<SourcePicture> picture = {};
  std::optional<LayerGraph> graph = {};  // replaces the maps
  std::optional<ShownSum> sum = {};      // describes the only map
};

// Returns the picture of a source as the model reads it; empty if the model reads neither images
// nor sounds. `name` as for Model::source_image().
std::optional<SourcePicture> source_picture(const Model& model, const std::string& name);

// Returns what the options select. Error on a view that has nothing to show, on a layer, a head or
// a method that does not exist, and on evidence for a view without a method.
Shown show(const Explanation& explanation, const ShowOptions& options);

// Returns the map of the options' method, not tested.
TestedMethods first_method(const Explanation& explanation, const ShowOptions& options);

// Returns the maps with titles that name the patterns of their heads.
std::vector<Alignment> titled_maps(const Shown& shown);

// Returns one line of JSON per map (attend/explain/explanation_json.h).
std::string shown_json(const Shown& shown);

// Draws one map, over the picture of its source if it has one, or thumbnails of several maps.
std::string shown_svg(const Shown& shown);

}  // namespace attend
