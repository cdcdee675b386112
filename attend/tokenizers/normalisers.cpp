#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "attend/base/error.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/decomposition-inl.h"
#include "attend/tokenizers/normaliser-inl.h"

namespace attend::internal {
namespace {

// Limits on the length of a normalised text: replacements from a file could multiply each other.
constexpr size_t max_at_least = size_t{1} << 20;
constexpr size_t max_per_byte = 64;

class NormalFormNormaliser : public Normaliser {
 public:
  NormalFormNormaliser(bool compatible, bool composed)
      : compatible_(compatible), composed_(composed) {}

  void apply(std::string_view text, std::string& result) const override {
    if (std::all_of(text.begin(), text.end(), is_ascii)) {
      result += text;
      return;
    }
    Decomposition apart(compatible_);
    for (size_t position = 0; position < text.size();) {
      const char32_t point = next_point(text, position);
      // utf8proc would compose code points that PyPI's tokenizers leaves unchanged.
      const bool is_untouched = composed_ && is(point, untouched);
      if (is_untouched) flush(apart, result);
      apart.add(point);
      if (is_untouched) flush(apart, result);
    }
    flush(apart, result);
  }

 private:
  void flush(Decomposition& apart, std::string& result) const {
    std::vector<int32_t> points = apart.ordered();
    apart.clear();
    if (composed_ && points.size() > 1) {
      const utf8proc_ssize_t size = utf8proc_normalize_utf32(
          points.data(), static_cast<utf8proc_ssize_t>(points.size()),
          static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      points.resize(static_cast<size_t>(size));
    }
    for (const int32_t point : points) append_point(result, static_cast<char32_t>(point));
  }

  bool compatible_, composed_;
};

class LowercaseNormaliser : public Normaliser {
 public:
  void apply(std::string_view text, std::string& result) const override {
    for (size_t position = 0; position < text.size();)
      append_lower(result, next_point(text, position));
  }
};

class StripAccentsNormaliser : public Normaliser {
 public:
  void apply(std::string_view text, std::string& result) const override {
    for (size_t position = 0; position < text.size();) {
      const char32_t point = next_point(text, position);
      if (!is(point, combining)) append_point(result, point);
    }
  }
};

class StripNormaliser : public Normaliser {
 public:
  StripNormaliser(bool left, bool right) : left_(left), right_(right) {}

  void apply(std::string_view text, std::string& result) const override {
    while (left_ && !text.empty() && is(first_point(text), white_space))
      text.remove_prefix(character_size(text[0]));
    while (right_ && !text.empty() && is(last_point(text), white_space)) {
      std::string last;
      append_point(last, last_point(text));
      text.remove_suffix(last.size());
    }
    result += text;
  }

 private:
  bool left_, right_;
};

class ReplaceNormaliser : public Normaliser {
 public:
  ReplaceNormaliser(std::string searched, std::string replacement)
      : searched_(std::move(searched)), replacement_(std::move(replacement)) {}

  void apply(std::string_view text, std::string& result) const override {
    for (size_t found; (found = text.find(searched_)) != text.npos;) {
      result += text.substr(0, found);
      result += replacement_;
      text.remove_prefix(found + searched_.size());
    }
    result += text;
  }

 private:
  std::string searched_, replacement_;
};

class SpacesNormaliser : public Normaliser {
 public:
  explicit SpacesNormaliser(std::string replacement) : replacement_(std::move(replacement)) {}

  void apply(std::string_view text, std::string& result) const override {
    for (size_t found; (found = text.find("  ")) != text.npos;) {
      result += text.substr(0, found);
      result += replacement_;
      text.remove_prefix(std::min(text.find_first_not_of(' ', found), text.size()));
    }
    result += text;
  }

 private:
  std::string replacement_;
};

class WhiteSpaceNormaliser : public Normaliser {
 public:
  explicit WhiteSpaceNormaliser(std::string replacement) : replacement_(std::move(replacement)) {}

  void apply(std::string_view text, std::string& result) const override {
    for (size_t position = 0; position < text.size();) {
      const size_t first = position;
      size_t count = 0;
      for (size_t next = first; next < text.size() && is(next_point(text, next), white_space);
           position = next)
        ++count;
      const bool breaks = count == 1 && std::string_view("\t\n\r").find(text[first]) != text.npos;
      if (count == 0) next_point(text, position);
      if (count > 1 || breaks)
        result += replacement_;
      else
        result += text.substr(first, position - first);
    }
  }

 private:
  std::string replacement_;
};

class PrependNormaliser : public Normaliser {
 public:
  explicit PrependNormaliser(std::string text) : text_(std::move(text)) {}

  void apply(std::string_view text, std::string& result) const override {
    if (text.empty()) return;
    result += text_;
    result += text;
  }

 private:
  std::string text_;
};

class SequenceNormaliser : public Normaliser {
 public:
  explicit SequenceNormaliser(std::vector<NormaliserPointer> parts) : parts_(std::move(parts)) {}

  void apply(std::string_view text, std::string& result) const override {
    const size_t maximum = max_at_least + max_per_byte * text.size();
    std::string current(text), next;
    for (const NormaliserPointer& part : parts_) {
      next.clear();
      part->apply(current, next);
      if (next.size() > maximum)
        fail("the tokenizer's normaliser makes over {} bytes of {}; fetch the tokenizer anew",
             maximum, text.size());
      std::swap(current, next);
    }
    result += current;
  }

 private:
  std::vector<NormaliserPointer> parts_;
};

}  // namespace

NormaliserPointer normal_form_normaliser(bool compatible, bool composed) {
  return std::make_shared<NormalFormNormaliser>(compatible, composed);
}

NormaliserPointer lowercase_normaliser() { return std::make_shared<LowercaseNormaliser>(); }

NormaliserPointer strip_accents_normaliser() { return std::make_shared<StripAccentsNormaliser>(); }

NormaliserPointer strip_normaliser(bool left, bool right) {
  return std::make_shared<StripNormaliser>(left, right);
}

NormaliserPointer replace_normaliser(std::string searched, std::string replacement) {
  return std::make_shared<ReplaceNormaliser>(std::move(searched), std::move(replacement));
}

NormaliserPointer spaces_normaliser(std::string replacement) {
  return std::make_shared<SpacesNormaliser>(std::move(replacement));
}

NormaliserPointer white_space_normaliser(std::string replacement) {
  return std::make_shared<WhiteSpaceNormaliser>(std::move(replacement));
}

NormaliserPointer prepend_normaliser(std::string text) {
  return std::make_shared<PrependNormaliser>(std::move(text));
}

NormaliserPointer sequence_normaliser(std::vector<NormaliserPointer> parts) {
  return std::make_shared<SequenceNormaliser>(std::move(parts));
}

}  // namespace attend::internal
