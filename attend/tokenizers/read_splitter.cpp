#include <utility>

#include "attend/tokenizers/read_parts-inl.h"

namespace attend::internal {
namespace {

struct SplitterType {
  std::string type;
  SplitterPointer (*read)(const JsonPosition& place);
};

struct PrependName {
  std::string_view name;
  Prepend prepend;
};
constexpr PrependName prepend_names[] = {
    {"always", Prepend::always}, {"first", Prepend::first}, {"never", Prepend::never}};

SplitterPointer read_splitters(const JsonPosition& place) {
  std::vector<SplitterPointer> parts;
  for (const JsonPosition& part : place.member("pretokenizers").list())
    parts.push_back(read_splitter(part));
  return sequence_splitter(std::move(parts));
}

const std::vector<SplitterType>& splitter_types() {
  static const std::vector<SplitterType> table = {
      {"BertPreTokenizer", [](const JsonPosition&) { return bert_splitter(); }},
      {"WhitespaceSplit", [](const JsonPosition&) { return white_space_splitter(); }},
      {"ByteLevel",
       [](const JsonPosition& place) {
         return byte_level_splitter(place.flag("add_prefix_space", true),
                                    place.flag("use_regex", true));
       }},
      {"Metaspace",
       [](const JsonPosition& place) {
         return metaspace_splitter(read_filled(place, "replacement", space_mark),
                                   read_prepend(place), place.flag("split", true));
       }},
      {"Sequence", read_splitters},
  };
  return table;
}

}  // namespace

std::string read_filled(const JsonPosition& place, const char* key, const char* otherwise) {
  constexpr size_t longest = 4096;
  std::string text = place.text(key, otherwise);
  if (text.empty()) place.refuse("has an empty {}", key);
  if (text.size() > longest) place.refuse("has a {} of over {} bytes", key, longest);
  return text;
}

Prepend read_prepend(const JsonPosition& place) {
  // Older files have a flag instead of the scheme.
  const bool added = place.flag("add_prefix_space", true);
  if (!place.has("prepend_scheme")) return added ? Prepend::always : Prepend::never;
  const JsonPosition scheme = place.member("prepend_scheme");
  const std::string wanted = scheme.text();
  for (const auto& [name, prepend] : prepend_names)
    if (name == wanted) return prepend;
  scheme.refuse("is {}, not always, first or never", in_quotes(wanted));
}

SplitterPointer read_splitter(const JsonPosition& place) {
  return place.row_of_type(splitter_types()).read(place);
}

}  // namespace attend::internal
