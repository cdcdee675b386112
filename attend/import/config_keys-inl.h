#pragma once

#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/nn/feed_forward.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {

constexpr int64_t most_tokens = 900'000;  // a vocabulary has a million
constexpr double most_dropout = 0.95;

// A key of a config.json that is known.
struct ConfigKey {
  std::string name;
  std::string only = {};  // the JSON of the one value that is honoured; empty: any is
};

// Error, naming it, on a key that is neither one of these nor of those that every type has, and on
// a value that is not honoured. A null counts as left out.
void check_keys(const JsonPlace& config, const std::vector<ConfigKey>& own);

// The one class that config.json names, by its row in a table of those that are read. Error, with
// all names, on another one.
template <class Architecture>
const Architecture& architecture_in(const JsonPlace& config,
                                    const std::vector<Architecture>& table) {
  const JsonPlace names = config.member("architectures");
  const std::vector<JsonPlace> all = names.list();
  if (all.size() != 1) names.refuse("has {} names; one is read", all.size());
  const std::string name = all[0].text();
  std::string known;
  for (const Architecture& row : table) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  all[0].refuse("is {}, which is not read; {} are", in_quotes(name), known);
}

// The id of one of so many tokens, which must be there.
int64_t token_in(const JsonPlace& config, const char* key, int64_t tokens);

// A whole number from 1 to `most`, which must be there.
int64_t size_in(const JsonPlace& config, const char* key, int64_t most);

// A number from `least` to `most`, or the default.
double real_in(const JsonPlace& config, const char* key, double otherwise, double least,
               double most);

// The activation that their key names, or the default.
HiddenActivation activation_in(const JsonPlace& config, const char* key,
                               const char* otherwise = "gelu");

// The name of an activation in their files.
std::string activation_name(HiddenActivation activation);

// The names of what is answered, by number: id2label, or as many as num_labels says, called LABEL_0
// and so on.
std::vector<std::string> answers_in(const JsonPlace& config);

// The same of labels. Error where there is one, which stands for a number.
std::vector<std::string> labels_in(const JsonPlace& config);

// The same of labels that stand beside each other in an answer. Error on one with white space.
std::vector<std::string> words_in(const JsonPlace& config);

}  // namespace attend::internal
