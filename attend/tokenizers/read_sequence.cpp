#include <utility>

#include "attend/tokenizers/read_parts-inl.h"

namespace attend::internal {
namespace {

using Parts = std::vector<TemplatePart>;
using Kind = TemplatePart::Kind;

struct SequenceType {
  std::string type;
  SequenceTemplate (*read)(const JsonPosition& place);
};

// [token, id]
TemplatePart read_special(const JsonPosition& place, int32_t type) {
  const std::vector<JsonPosition> pair = place.list();
  if (pair.size() != 2) place.refuse("is not a pair of a token and its id");
  return {Kind::special, type, {static_cast<int32_t>(pair[1].number())}};
}

SequenceTemplate read_bert_sequence(const JsonPosition& place) {
  const JsonPosition cls = place.member("cls"), sep = place.member("sep");
  const TemplatePart begin = read_special(cls, 0), end = read_special(sep, 0);
  return {{begin, {Kind::first}, end},
          {begin, {Kind::first}, end, {Kind::second, 1}, read_special(sep, 1)}};
}

SequenceTemplate read_roberta_sequence(const JsonPosition& place) {
  const TemplatePart begin = read_special(place.member("cls"), 0);
  const TemplatePart end = read_special(place.member("sep"), 0);
  return {{begin, {Kind::first}, end}, {begin, {Kind::first}, end, end, {Kind::second}, end}};
}

// {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
TemplatePart read_template_part(const JsonPosition& place, const JsonPosition& special_tokens) {
  constexpr int64_t greatest_type = 255;
  const bool special = place.has("SpecialToken");
  const JsonPosition part = place.member(special ? "SpecialToken" : "Sequence");
  TemplatePart result;
  const int64_t type = part.number("type_id", 0);
  if (type > greatest_type) part.refuse("has a type_id over {}", greatest_type);
  result.type = static_cast<int32_t>(type);
  const std::string id = part.member("id").text();
  if (!special) {
    constexpr std::string_view first = "A", second = "B";
    if (id != first && id != second) part.refuse("is the sequence {}, not A or B", in_quotes(id));
    result.kind = id == first ? Kind::first : Kind::second;
    return result;
  }
  const Json& all = special_tokens.value();
  const auto found = all.is_object() ? all.find(id) : all.end();
  if (found == all.end()) part.refuse("is {}, which special_tokens lacks", in_quotes(id));
  result.kind = Kind::special;
  for (const JsonPosition& number : JsonPosition(*found, place.file()).member("ids").list())
    result.ids.push_back(static_cast<int32_t>(number.number()));
  return result;
}

Parts read_template(const JsonPosition& place, const JsonPosition& special_tokens, size_t texts) {
  Parts parts;
  size_t first = 0, second = 0;
  for (const JsonPosition& part : place.list()) {
    parts.push_back(read_template_part(part, special_tokens));
    first += parts.back().kind == Kind::first ? 1 : 0;
    second += parts.back().kind == Kind::second ? 1 : 0;
  }
  if (first != 1 || second != texts - 1)
    place.refuse("must have {}", texts == 1 ? "A once and no B" : "A and B, each once");
  return parts;
}

SequenceTemplate read_templates(const JsonPosition& place) {
  const JsonPosition special_tokens = place.member("special_tokens");
  return {read_template(place.member("single"), special_tokens, 1),
          read_template(place.member("pair"), special_tokens, 2)};
}

// Parts that add no special tokens may accompany the one that does.
SequenceTemplate read_sequences(const JsonPosition& place) {
  SequenceTemplate result;
  const size_t plain = result.single.size();
  for (const JsonPosition& part : place.member("processors").list()) {
    SequenceTemplate next = read_sequence(part);
    if (next.single.size() == plain) continue;
    if (result.single.size() != plain) part.refuse("is a second part that adds special tokens");
    result = std::move(next);
  }
  return result;
}

const std::vector<SequenceType>& sequence_types() {
  static const std::vector<SequenceType> table = {
      {"TemplateProcessing", read_templates},
      {"BertProcessing", read_bert_sequence},
      {"RobertaProcessing", read_roberta_sequence},
      {"ByteLevel", [](const JsonPosition&) { return SequenceTemplate{}; }},
      {"Sequence", read_sequences},
  };
  return table;
}

}  // namespace

SequenceTemplate read_sequence(const JsonPosition& place) {
  return place.row_of_type(sequence_types()).read(place);
}

}  // namespace attend::internal
