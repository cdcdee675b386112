#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/enum_names.h"

namespace attend {

struct ExplanationPage;
struct KnockOut;
struct LayerGraph;
struct Shown;

// Kind of file that `attend explain` writes, named by its suffix. Requests to /v1/explain name it
// by the suffix without its dot. A writer is empty if the kind lacks this form.
struct ExplainFile {
  std::string_view suffix;
  std::string_view note;  // shown after the suffix
  std::string media_type;
  // Error on maps that the kind cannot hold.
  std::function<std::string(const Shown& shown)> maps = {};
  std::function<std::string(const LayerGraph& graph)> graph = {};
  std::function<std::string(const KnockOut& effect)> knock_out = {};
  // A page of all layers, and of all methods or the named one, independent of the selected view.
  std::function<std::string(const ExplanationPage& page)> page = {};
  bool always_tested = false;  // the methods of the page, also without ShowOptions::evidence
  bool has_objects = false;  // a JSON object per line; an answer to a request has them in an array
};

const std::vector<ExplainFile>& explain_files();

// Lists of all suffixes, and of the suffixes that support a graph of layers.
std::string listed_explain_files();
std::string listed_layer_graph_files();

// Kind of file in a request: a row of explain_files(), or "page", the data of a page.
enum class ExplainFormat : size_t {};
EnumNames names_of(ExplainFormat);
const ExplainFile& file_of(ExplainFormat format);

}  // namespace attend
