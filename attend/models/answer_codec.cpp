#include "attend/models/answer_codec.h"

#include <vector>

#include "attend/base/error.h"
#include "attend/models/transformer_config.h"

namespace attend {

std::string only_answer_language(const PairModel& model) {
  const auto &source = model.codecs.source.tokenizer, &target = model.codecs.target.tokenizer;
  if (!source || !target || !target->languages().empty()) return {};
  const std::vector<int64_t> shared = model.config.of<TransformerConfig>().shared();
  if (shared.empty()) return {};
  const int64_t begin = Vocabulary::unknown + 1 + shared[Vocabulary::bos];
  if (begin >= model.source_vocabulary.size()) return {};
  const std::string& name = model.source_vocabulary.token(begin);
  for (const std::string& language : source->languages())
    if (source->in_language(language).language_token() == name) return language;
  return {};
}

TextCodec answer_codec(const PairModel& model, const std::string& language) {
  const TextCodec& codec = model.codecs.target;
  if (language.empty()) return codec;
  const std::string only = only_answer_language(model);
  if (only.empty()) return codec.in_language(language);
  if (language != only)
    fail("the model answers only in {}, not in {}; leave the language of answers out", only,
         in_quotes(language));
  return codec;
}

}  // namespace attend
