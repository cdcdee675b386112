#pragma once

#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/nn/feed_forward.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {

constexpr int64_t most_tokens = 900'000;  // a vocabulary has a million
constexpr double most_dropout = 0.95;

// Notes for the user about a folder that was read; each is one line.
using Notes = std::vector<std::string>;

// A key of a JSON file that changes results.
struct ConfigKey {
  std::string name;
  std::string only = {};    // JSON of the only value that is honoured; empty: any value
  std::string reason = {};  // why other values are not honoured; may be empty
};

// Returns the value as JSON, cut to one short line for a message.
std::string shown(const Json& value);

// Checks an object whose keys all change results. Error, naming it, on a key that is not in `known`
// and on a value that is not honoured. Null counts as left out.
void check_keys(const JsonPlace& object, const std::vector<ConfigKey>& known);

// Checks a config.json. Error on a value of `own`, or of the keys of every type, that is not
// honoured. Adds one note that lists all other keys, but for well-known ones: they change nothing.
void check_values(const JsonPlace& config, const std::vector<ConfigKey>& own, Notes& notes);

// Returns what a class of transformers is for, for a refusal; "" if it is not known.
std::string purpose_of_class(const std::string& name);

// Returns the row of the class that config.json names in a table of the classes that are read.
// Error, with all names, if it names none of them or several.
template <class Architecture>
const Architecture& architecture_in(const JsonPlace& config,
                                    const std::vector<Architecture>& table) {
  const JsonPlace names = config.member("architectures");
  const std::vector<JsonPlace> all = names.list();
  const Architecture* found = nullptr;
  for (const JsonPlace& name : all)
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

// Returns the token that ends answers: eos_token_id, of which a list may name several. Adds a note
// about all but the first.
int64_t end_token_in(const JsonPlace& config, int64_t tokens, Notes& notes);

// Returns the labels by number: id2label, or as many as num_labels says, called LABEL_0 and so on.
// Labels that would be read as one, and those that spell a fixed token of a Vocabulary, get their
// number, with a note.
std::vector<std::string> answers_in(const JsonPlace& config, Notes& notes);

// The same. Error if there is only one label, which stands for a number.
std::vector<std::string> labels_in(const JsonPlace& config, Notes& notes);

// The same for labels that stand next to each other in an answer: white space becomes _, with a
// note.
std::vector<std::string> words_in(const JsonPlace& config, Notes& notes);

}  // namespace attend::internal
