#include "attend/data/source_texts.h"

#include "attend/base/error.h"
#include "attend/text/units.h"

namespace attend {
namespace {

void check_text(std::string_view text, const char* which) {
  if (split_words(text).empty())
    fail("the {} text of the pair is empty; give two texts with a TAB between them", which);
}

}  // namespace

SourceTexts source_texts(std::string_view source, PairTexts pairs) {
  if (pairs == PairTexts::never) return {source};
  const size_t tab = source.find('\t');
  if (tab == std::string_view::npos) {
    if (pairs == PairTexts::always)
      fail(
          "the source is one text; data.pairs is always, so give two texts with a TAB between "
          "them");
    return {source};
  }
  const SourceTexts texts{source.substr(0, tab), source.substr(tab + 1)};
  if (texts.second->find('\t') != std::string_view::npos)
    fail("the source has several TABs, so it is more than two texts; give two with one TAB");
  check_text(texts.first, "first");
  check_text(*texts.second, "second");
  return texts;
}

}  // namespace attend
