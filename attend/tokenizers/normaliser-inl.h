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

// Options of BertNormalizer. `clean` removes control characters and converts white space to spaces.
// `separate_cjk` puts spaces around Chinese characters.
struct BertNormalisation {
  bool clean = true;
  bool separate_cjk = true;
  bool strip_accents = true;
  bool lowercase = true;
};
NormaliserPointer bert_normaliser(const BertNormalisation& options);

// Unicode normal forms: compatible (NFKC, NFKD) or canonical (NFC, NFD); composed (NFKC, NFC) or
// decomposed.
NormaliserPointer normal_form_normaliser(bool compatible, bool composed);

NormaliserPointer lowercase_normaliser();
NormaliserPointer strip_accents_normaliser();               // existing combining marks
NormaliserPointer strip_normaliser(bool left, bool right);  // white space at the ends
// Replaces each occurrence of `searched`, which must not be empty.
NormaliserPointer replace_normaliser(std::string searched, std::string replacement);
NormaliserPointer spaces_normaliser(std::string replacement);  // each run of two or more
// Replaces each run of two or more characters of white space, and each single TAB, LF and CR.
NormaliserPointer white_space_normaliser(std::string replacement);
NormaliserPointer prepend_normaliser(std::string text);  // before each non-empty text
NormaliserPointer sequence_normaliser(std::vector<NormaliserPointer> parts);

}  // namespace attend::internal
