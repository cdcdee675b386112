#pragma once

#include <string>
#include <vector>

#include "attend/nn/feed_forward.h"
#include "attend/tokenizers/json.h"

namespace attend::internal {

// A key of a config.json that is known.
struct ConfigKey {
  std::string name;
  std::string only = {};  // the JSON of the one value that is honoured; empty: any is
};

// Error, naming it, on a key that is neither one of these nor of those that every type has, and on
// a value that is not honoured. A null counts as left out.
void check_keys(const JsonPlace& config, const std::vector<ConfigKey>& own);

constexpr double most_dropout = 0.95;

// The place, among these, of the one class that config.json names. Error on another.
size_t architecture_in(const JsonPlace& config, const std::vector<std::string>& known);

// A whole number from 1 to `most`, which must be there.
int64_t size_in(const JsonPlace& config, const char* key, int64_t most);

// A number from `least` to `most`, or the default.
double real_in(const JsonPlace& config, const char* key, double otherwise, double least,
               double most);

// The activation that their key names, or the default, gelu.
HiddenActivation activation_in(const JsonPlace& config, const char* key);

// The name of an activation in their files.
std::string activation_name(HiddenActivation activation);

// The names of labels by number: id2label, or as many as num_labels says, called LABEL_0 and so on.
std::vector<std::string> labels_in(const JsonPlace& config);

}  // namespace attend::internal
