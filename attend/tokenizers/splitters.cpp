#include <algorithm>
#include <array>
#include <utility>

#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/splitter-inl.h"

namespace attend::internal {
namespace {

constexpr uint16_t bert_cuts = white_space | bert_punctuation;

// For ASCII characters: the classes at which words are split.
const std::array<uint16_t, 128>& ascii_cuts() {
  static const auto table = [] {
    std::array<uint16_t, 128> classes;
    for (char32_t point = 0; point < classes.size(); ++point)
      classes[point] = character_classes().classes(point) & bert_cuts;
    return classes;
  }();
  return table;
}

// Splits at characters of the classes `cuts`. These characters become pieces, except white space.
class CutSplitter : public Splitter {
 public:
  explicit CutSplitter(uint16_t cuts) : cuts_(cuts) {}

  void split(std::string_view text, size_t front, const PieceSink& sink) const override {
    const std::array<uint16_t, 128>& ascii = ascii_cuts();
    const auto tell = [&](size_t begin, size_t end) {
      if (begin < end) sink(text.substr(begin, end - begin), front > begin ? front - begin : 0);
    };
    size_t begin = 0;
    for (size_t position = 0; position < text.size();) {
      const size_t here = position;
      const uint16_t classes = is_ascii(text[here])
                                   ? ascii[static_cast<unsigned char>(text[position++])]
                                   : character_classes().classes(next_point(text, position));
      if ((classes & cuts_) == 0) continue;
      tell(begin, here);
      if (!(classes & white_space)) tell(here, position);
      begin = position;
    }
    tell(begin, text.size());
  }

 private:
  uint16_t cuts_;
};

class MetaspaceSplitter : public Splitter {
 public:
  MetaspaceSplitter(std::string mark, Prepend prepend, bool cut)
      : mark_(std::move(mark)), prepend_(prepend), cut_(cut) {}

  void split(std::string_view text, size_t front, const PieceSink& sink) const override {
    if (text.empty()) return;
    std::string marked;
    const bool prefixed = prepend_ == Prepend::always || (prepend_ == Prepend::first && front > 0);
    if (prefixed && text[0] != ' ' && !text.starts_with(mark_)) marked = mark_;
    for (const char byte : text) byte == ' ' ? marked += mark_ : marked += byte;
    const std::string_view whole = marked;
    size_t begin = 0;
    while (cut_ && begin < whole.size()) {
      const size_t end = std::min(whole.find(mark_, begin + 1), whole.size());
      sink(whole.substr(begin, end - begin), begin == 0 ? front : 0);
      begin = end;
    }
    if (begin < whole.size()) sink(whole.substr(begin), front);
  }

 private:
  std::string mark_;
  Prepend prepend_;
  bool cut_;
};

class SequenceSplitter : public Splitter {
 public:
  explicit SequenceSplitter(std::vector<SplitterPointer> parts) : parts_(std::move(parts)) {}

  void split(std::string_view text, size_t front, const PieceSink& sink) const override {
    split_from(0, text, front, sink);
  }

  bool spells_bytes() const override {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const SplitterPointer& part) { return part->spells_bytes(); });
  }

 private:
  void split_from(size_t part, std::string_view text, size_t front, const PieceSink& sink) const {
    if (part == parts_.size()) return sink(text, front);
    parts_[part]->split(text, front, [&](std::string_view piece, size_t rest) {
      split_from(part + 1, piece, rest, sink);
    });
  }

  std::vector<SplitterPointer> parts_;
};

}  // namespace

SplitterPointer bert_splitter() { return std::make_shared<CutSplitter>(bert_cuts); }

SplitterPointer white_space_splitter() { return std::make_shared<CutSplitter>(white_space); }

SplitterPointer metaspace_splitter(std::string mark, Prepend prepend, bool cut) {
  return std::make_shared<MetaspaceSplitter>(std::move(mark), prepend, cut);
}

SplitterPointer sequence_splitter(std::vector<SplitterPointer> parts) {
  return std::make_shared<SequenceSplitter>(std::move(parts));
}

}  // namespace attend::internal
