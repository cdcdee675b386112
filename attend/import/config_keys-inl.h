#pragma once

#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/nn/feed_forward.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {

constexpr int64_t max_tokens = 900'000;  // a vocabulary holds at most a million
constexpr double max_dropout = 0.95;

// Notes for the user about an imported folder; one line each.
using Notes = std::vector<std::string>;

// Key of a JSON file that changes results.
struct ConfigKey {
  std::string name;
  std::string only = {};    // JSON of the only supported value; empty: any value
  std::string reason = {};  // why other values are not supported; may be empty
};

// Returns the value as JSON, cut to one short line for a message.
std::string shown(const Json& value);

// Checks an object in which all keys change results. Error, naming the key, if it is not in `known`
// or has an unsupported value. Null counts as missing.
void check_keys(const JsonPosition& object, const std::vector<ConfigKey>& known);

// Checks a config.json. Error on an unsupported value of a key in `own` or of a key that every type
// has. Adds one note that lists all other keys, except well-known ones: they change nothing.
void check_values(const JsonPosition& config, const std::vector<ConfigKey>& own, Notes& notes);

// Returns the purpose of a class of transformers, for an error message; "" if it is unknown.
std::string purpose_of_class(const std::string& name);

// Returns the row of a table of supported classes that config.json names. Error, with all names, if
// it names none of them or several.
template <class Architecture>
const Architecture& architecture_in(const JsonPosition& config,
                                    const std::vector<Architecture>& table) {
  const JsonPosition names = config.member("architectures");
  const std::vector<JsonPosition> all = names.list();
  const Architecture* found = nullptr;
  for (const JsonPosition& name : all)
    for (const Architecture& row : table) {
      if (row.name != name.text()) continue;
      if (found != nullptr) names.refuse("names two classes that are read; leave one of them");
      found = &row;
    }
  if (found != nullptr) return *found;
  if (all.empty()) names.refuse("names no class; write the one that the model has");
  std::string known;
  for (const Architecture& row : table) known += (known.empty() ? "" : ", ") + row.name;
  const std::string name = all[0].text();
  all[0].refuse("is {}{}, which is not read; {} are", in_quotes(name), purpose_of_class(name),
                known);
}

// Reads the required id of a token, less than `tokens`.
int64_t token_in(const JsonPosition& config, const char* key, int64_t tokens);

// Reads a required whole number from 1 to `most`.
int64_t size_in(const JsonPosition& config, const char* key, int64_t maximum);

// Reads a number from `least` to `most`; returns `otherwise` if it is missing.
double real_in(const JsonPosition& config, const char* key, double otherwise, double least,
               double maximum);

// Reads the activation that the key names; returns `otherwise` if it is missing.
HiddenActivation activation_in(const JsonPosition& config, const char* key,
                               const char* otherwise = "gelu");

// Returns the name of an activation in config.json.
std::string activation_name(HiddenActivation activation);

// Returns the token that ends answers: eos_token_id, which may be a list. Adds a note about all but
// the first.
int64_t end_token_in(const JsonPosition& config, int64_t tokens, Notes& notes);

// Returns the labels by number: id2label, or num_labels labels LABEL_0 and so on. A label that
// equals an earlier one or a fixed token of a Vocabulary gets its number appended, with a note.
std::vector<std::string> answers_in(const JsonPosition& config, Notes& notes);

// Like answers_in(). Error on a single label: the model then answers with a number.
std::vector<std::string> labels_in(const JsonPosition& config, Notes& notes);

// Like labels_in(), for labels that white space separates in an answer: white space in a label
// becomes _, with a note.
std::vector<std::string> words_in(const JsonPosition& config, Notes& notes);

}  // namespace attend::internal
