#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attend::internal {

// Changes a text before it is split. Texts are well-formed UTF-8.
class Normaliser {
 public:
  virtual ~Normaliser() = default;
  // Appends the changed text to `result`.
  virtual void apply(std::string_view text, std::string& result) const = 0;
};

using NormaliserPointer = std::shared_ptr<const Normaliser>;

// What BertNormalizer does: drops control characters and takes white space for spaces (`clean`),
// sets Chinese characters apart (`separate_cjk`), drops accents, takes lower case.
struct BertNormalisation {
  bool clean = true;
  bool separate_cjk = true;
  bool strip_accents = true;
  bool lowercase = true;
};
NormaliserPointer bert_normaliser(const BertNormalisation& options);

// Unicode's normal forms, composed or not, compatible (NFKC, NFKD) or canonical (NFC, NFD).
NormaliserPointer normal_form_normaliser(bool compatible, bool composed);

NormaliserPointer lowercase_normaliser();
NormaliserPointer strip_accents_normaliser();               // combining marks, as they stand
NormaliserPointer strip_normaliser(bool left, bool right);  // white space at the ends
// Each occurrence of `searched`, which is not empty.
NormaliserPointer replace_normaliser(std::string searched, std::string replacement);
NormaliserPointer spaces_normaliser(std::string replacement);  // each two or more spaces in a row
NormaliserPointer prepend_normaliser(std::string text);        // in front of what is not empty
NormaliserPointer sequence_normaliser(std::vector<NormaliserPointer> parts);

}  // namespace attend::internal
