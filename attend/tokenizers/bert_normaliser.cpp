#include <array>

#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/decomposition-inl.h"
#include "attend/tokenizers/normaliser-inl.h"

namespace attend::internal {
namespace {

class BertNormaliser : public Normaliser {
 public:
  explicit BertNormaliser(const BertNormalisation& options) : options_(options) {
    for (char32_t point = 0; point < ascii_.size(); ++point) {
      std::string text;
      append_changed(cleaned(point), text);
      // U+0000 marks removed characters; cleaning always removes it.
      ascii_[point] = text.empty() ? '\0' : text[0];
    }
  }

  void apply(std::string_view text, std::string& result) const override {
    Decomposition marks;
    for (size_t position = 0; position < text.size();) {
      if (is_ascii(text[position])) {
        add_ascii(text[position++], marks, result);
        continue;
      }
      const char32_t point = next_point(text, position);
      if (options_.clean && is(point, bert_removed)) continue;
      const char32_t kept = cleaned(point);
      const bool apart = options_.separate_cjk && is(kept, bert_cjk);
      if (apart) {
        flush(marks, result);
        result.push_back(' ');
      }
      if (options_.strip_accents && is(kept, nfd_changes)) {
        marks.add(kept);
      } else {
        flush(marks, result);
        append_changed(kept, result);
      }
      if (apart) {
        flush(marks, result);
        result.push_back(' ');
      }
    }
    flush(marks, result);
  }

 private:
  void add_ascii(char character, Decomposition& marks, std::string& result) const {
    const char kept = ascii_[static_cast<unsigned char>(character)];
    if (kept == '\0' && options_.clean) return;
    flush(marks, result);
    result.push_back(kept);
  }

  char32_t cleaned(char32_t point) const {
    if (!options_.clean) return point;
    if (is(point, bert_removed)) return 0;
    return is(point, bert_space) ? U' ' : point;
  }

  // `point` is in normal form D already.
  void append_changed(char32_t point, std::string& result) const {
    if (options_.strip_accents && is(point, bert_mark)) return;
    options_.lowercase ? append_lower(result, point) : append_point(result, point);
  }

  void flush(Decomposition& marks, std::string& result) const {
    if (marks.empty()) return;
    for (const int32_t point : marks.ordered())
      append_changed(static_cast<char32_t>(point), result);
    marks.clear();
  }

  BertNormalisation options_;
  std::array<char, 128> ascii_;  // result per character; no ASCII character becomes two
};

}  // namespace

NormaliserPointer bert_normaliser(const BertNormalisation& options) {
  return std::make_shared<BertNormaliser>(options);
}

}  // namespace attend::internal
