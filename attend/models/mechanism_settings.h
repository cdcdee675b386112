#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/base/settings.h"
#include "attend/nn/attention_choices.h"

namespace attend {

// Settings that choose a model's attention: a row of mechanism_table(), and optional replacements
// of its choices.
struct MechanismSettings {
  static constexpr std::string_view no_bias = "none";
  // The mechanism's own bias. If it lacks a bias, so that weights would not depend on positions,
  // and the normaliser supports biases: buckets:32.
  static constexpr std::string_view automatic_bias = "auto";

  std::string mechanism;
  std::string score = {};  // empty, here and in the next three: the mechanism's own choice
  std::string scope = {};
  std::string bias = {};  // no_bias: no bias, even if the mechanism has one
  std::string normaliser = {};

  AttentionChoices choices() const;  // Error if the mechanism does not exist

  // For networks that are trained only by the loss. Error as check_choices, and if the normaliser
  // gives the scores no gradient. `prefix` as in settings().
  void check(const std::string& prefix) const;

  // See NetworkConfig::not_shared_reason().
  std::string not_shared_reason(const std::string& prefix) const;

  // Settings with keys "<prefix>mechanism", "<prefix>score" and so on; prefix: "model." or
  // "model.source_". `scores`: additional choices of the score.
  Settings settings(const std::string& prefix, const std::string& which,
                    const std::vector<std::string>& scores = {});
};

}  // namespace attend
