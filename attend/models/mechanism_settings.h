#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attend/base/settings.h"
#include "attend/nn/attention_choices.h"

namespace attend {

// A row of mechanism_table() and what replaces its choices: the settings by which a model's
// attention is chosen.
struct MechanismSettings {
  static constexpr std::string_view no_bias = "none";

  std::string mechanism;
  std::string score = {};  // empty, as in the next three: the mechanism's own
  std::string scope = {};
  std::string bias = {};  // no_bias: none where the mechanism has one
  std::string normaliser = {};

  AttentionChoices choices() const;  // Error where there is no such mechanism

  // For networks that train by the loss alone: Error as check_choices, and on a normaliser that
  // gives the scores no gradient. `prefix` as in settings().
  void check(const std::string& prefix) const;

  // Answers as NetworkConfig::why_not_shared() does.
  std::string why_not_shared(const std::string& prefix) const;

  // prefix mechanism, prefix score and so on: model. and model.source_. `scores`: choices of the
  // score beside those of score_table().
  Settings settings(const std::string& prefix, const std::string& which,
                    const std::vector<std::string>& scores = {});
};

}  // namespace attend
