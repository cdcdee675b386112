#pragma once

#include <optional>
#include <string_view>

#include "attend/base/settings.h"

namespace attend {

// Whether a source is a pair of texts, with a TAB between them, such as a question and a passage:
// never, if it has a TAB, or always.
enum class PairTexts { never, optional, always };
inline EnumNames names_of(PairTexts) { return {"never", "optional", "always"}; }

// The texts of a source.
struct SourceTexts {
  std::string_view first;
  std::optional<std::string_view> second = {};
};

// Returns the texts of a source: the whole source if `pairs` is never. Otherwise Error on several
// TABs, on a pair with a blank text, and on a missing TAB if `pairs` is always.
SourceTexts source_texts(std::string_view source, PairTexts pairs);

}  // namespace attend
