#include "attend/models/token_tables.h"

#include <algorithm>
#include <map>
#include <optional>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed_parts.h"
#include "attend/text/vocabulary.h"

namespace attend {

Settings TokenTables::token_settings() {
  return {
      {"model.output_bias", &output_bias,
       "whether each token has a bias if the output shares the embedding"},
      {"model.fixed_output_bias", &fixed_output_bias,
       "whether training leaves the biases of answered tokens unchanged, for classes of "
       "transformers without biases"},
      {"model.scale_embedding", &scale_embedding,
       "whether token vectors are multiplied by the square root of model.depth"},
      {"model.shared_tokens", &shared_tokens,
       "three tokens, numbered from 0, that share their vectors with padding, the begin and the "
       "end of answers, also in training, such as 0, 0, 1; empty: none does"}};
}

std::vector<int64_t> TokenTables::shared() const {
  std::vector<int64_t> tokens;
  if (trimmed(shared_tokens).empty()) return tokens;
  for (const std::string& text : trimmed_parts(shared_tokens, ',')) {
    const std::optional<int64_t> number = parse_number<int64_t>(text);
    if (number && *number >= 0) tokens.push_back(*number);
  }
  if (tokens.size() != 3 || std::count(shared_tokens.begin(), shared_tokens.end(), ',') != 2)
    fail("model.shared_tokens is {}; write three numbers of tokens, from 0, such as 0, 0, 1",
         in_quotes(shared_tokens));
  return tokens;
}

std::vector<std::vector<int64_t>> TokenTables::equal_tokens() const {
  std::map<int64_t, std::vector<int64_t>> by_token;
  const std::vector<int64_t> tokens = shared();
  for (size_t fixed = 0; fixed < tokens.size(); ++fixed) {
    std::vector<int64_t>& group = by_token[tokens[fixed]];
    if (group.empty()) group.push_back(Vocabulary::unknown + 1 + tokens[fixed]);
    group.push_back(static_cast<int64_t>(fixed));
  }
  std::vector<std::vector<int64_t>> groups;
  groups.reserve(by_token.size());
  for (const auto& [token, group] : by_token) groups.push_back(group);
  return groups;
}

}  // namespace attend
