#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/explain/answer_page.h"
#include "attend/explain/head_patterns.h"
#include "attend/explain/show_options.h"
#include "attend/pictures/alignment.h"
#include "attend/pictures/layer_graph.h"
#include "attend/pictures/source_picture.h"

namespace attend {

// The maps that are printed or drawn: one of a method, or one of each head.
struct Shown {
  std::vector<Alignment> maps = {};
  bool of_one_sequence = false;            // the first map's sides are one
  std::vector<TestedMethod> methods = {};  // of the first maps, in their order
  // Of maps of heads, in their order; without shares where a head is not of self-attention.
  std::vector<HeadPatterns> patterns = {};
  std::string text = {};  // the source, as it was given
  std::optional<SourcePicture> picture = {};
  std::optional<LayerGraph> graph = {};  // in place of maps
};

// The picture of a source, as the model reads it; none of a model that reads neither images nor
// sounds. `name` as for Model::source_image().
std::optional<SourcePicture> source_picture(const Model& model, const std::string& name);

// What the options ask for. Error on a view that has nothing to show, on a layer, a head or a
// method that does not exist, and on evidence for a view that is of no method.
Shown show(const Subject& subject, const ShowOptions& options);

// The map of the options' method alone, not tested; without a map, but a note that says why, where
// none is named and default_method() has none.
TestedMethods first_method(const Subject& subject, const ShowOptions& options);

// The maps, whose titles say what their heads do, for people.
std::vector<Alignment> titled_maps(const Shown& shown);

// A line of JSON for each map (attend/explain/explanation_json.h).
std::string shown_json(const Shown& shown);

// A map, over the picture of its source where it has one, or thumbnails of several maps.
std::string shown_svg(const Shown& shown);

}  // namespace attend
