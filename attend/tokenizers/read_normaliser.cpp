#include <utility>

#include "attend/base/base64.h"
#include "attend/base/error.h"
#include "attend/tokenizers/charsmap-inl.h"
#include "attend/tokenizers/read_parts-inl.h"

namespace attend::internal {
namespace {

struct NormaliserType {
  std::string type;
  NormaliserPointer (*read)(const JsonPosition& place);
};

NormaliserPointer read_bert_normaliser(const JsonPosition& place) {
  BertNormalisation options;
  options.clean = place.flag("clean_text", true);
  options.separate_cjk = place.flag("handle_chinese_chars", true);
  options.lowercase = place.flag("lowercase", true);
  options.strip_accents = place.flag("strip_accents", options.lowercase);
  return bert_normaliser(options);
}

// Reads a replacement text.
std::string read_short(const JsonPosition& place, const char* key) {
  constexpr size_t longest = 256;
  std::string text = place.member(key).text();
  if (text.size() > longest) place.refuse("has a {} of over {} bytes", key, longest);
  return text;
}

// Regular expression of a replacement.
struct Expression {
  std::string_view pattern;
  NormaliserPointer (*make)(std::string replacement);
};
constexpr Expression expressions[] = {{" {2,}", spaces_normaliser},
                                      {R"(\s{2,}|[\n\r\t])", white_space_normaliser}};

// Reads a replacement of a text or of a regular expression.
NormaliserPointer read_replace(const JsonPosition& place) {
  const JsonPosition pattern = place.member("pattern");
  std::string content = read_short(place, "content");
  if (pattern.has("String"))
    return replace_normaliser(read_filled(pattern, "String", ""), std::move(content));
  const std::string expression = pattern.member("Regex").text();
  for (const Expression& one : expressions)
    if (one.pattern == expression) return one.make(std::move(content));
  pattern.refuse("is the expression {}, which is not read; {} and {} are", in_quotes(expression),
                 in_quotes(expressions[0].pattern), in_quotes(expressions[1].pattern));
}

std::string from_base64(const JsonPosition& place) {
  try {
    return base64_bytes(place.text());
  } catch (const Error& error) {
    place.refuse("is wrong: {}", error.what());
  }
}

NormaliserPointer read_precompiled(const JsonPosition& place) {
  const JsonPosition rules = place.member("precompiled_charsmap");
  return precompiled_normaliser(Charsmap(from_base64(rules), rules.file()));
}

NormaliserPointer read_normalisers(const JsonPosition& place) {
  std::vector<NormaliserPointer> parts;
  for (const JsonPosition& part : place.member("normalizers").list())
    parts.push_back(read_normaliser(part));
  return sequence_normaliser(std::move(parts));
}

const std::vector<NormaliserType>& normaliser_types() {
  static const std::vector<NormaliserType> table = {
      {"BertNormalizer", read_bert_normaliser},
      {"NFC", [](const JsonPosition&) { return normal_form_normaliser(false, true); }},
      {"NFD", [](const JsonPosition&) { return normal_form_normaliser(false, false); }},
      {"NFKC", [](const JsonPosition&) { return normal_form_normaliser(true, true); }},
      {"NFKD", [](const JsonPosition&) { return normal_form_normaliser(true, false); }},
      {"Lowercase", [](const JsonPosition&) { return lowercase_normaliser(); }},
      {"StripAccents", [](const JsonPosition&) { return strip_accents_normaliser(); }},
      {"Strip",
       [](const JsonPosition& place) {
         return strip_normaliser(place.flag("strip_left", true), place.flag("strip_right", true));
       }},
      {"Replace", read_replace},
      {"Prepend",
       [](const JsonPosition& place) { return prepend_normaliser(read_short(place, "prepend")); }},
      {"Precompiled", read_precompiled},
      {"Sequence", read_normalisers},
  };
  return table;
}

}  // namespace

NormaliserPointer read_normaliser(const JsonPosition& place) {
  return place.row_of_type(normaliser_types()).read(place);
}

}  // namespace attend::internal
