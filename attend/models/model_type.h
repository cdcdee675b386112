#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/settings.h"
#include "attend/data/text_config.h"
#include "attend/models/answer_kind.h"
#include "attend/models/target_shape.h"

namespace attend {

class PairNetwork;
class SourceShape;

// Maximum length of an answer in tokens, for decoders that do not end it. Far above the lengths of
// real pairs.
int64_t longest_answer(int64_t source_tokens);

// The settings of one model type, and the network that they describe.
class NetworkConfig {
 public:
  virtual ~NetworkConfig() = default;

  virtual std::unique_ptr<NetworkConfig> clone() const = 0;
  virtual Settings settings() = 0;  // keys model.*
  // Settings that define the meaning of the weights; a model that starts from another's weights
  // inherits them.
  virtual Settings weight_settings() = 0;
  virtual void check() const = 0;                     // Error if they describe no valid network
  virtual int64_t maximum_source_length() const = 0;  // maximum source tokens; the rest is cut
  virtual int64_t maximum_target_length() const = 0;  // maximum target tokens in training
  virtual int64_t context() const = 0;  // context length in tokens; 0 if not applicable
  // Tokens that consecutive parts of a long source share, for answers that are spans.
  virtual int64_t overlap() const = 0;
  virtual bool wants_joint_vocabulary() const = 0;  // one vocabulary for sources and targets
  // Whether a text's vector is the vector of its first token; otherwise the mean of all.
  virtual bool takes_first_vector() const = 0;
  // The setting that disables attention, for a network without attention.
  virtual std::string no_weights_reason() const = 0;
  // The setting by which model.mechanism has no effect; empty if it has one.
  virtual std::string unused_mechanism_reason() const = 0;
  // Why processes cannot share the sequences of its objective (Pass::world); empty if they can.
  virtual std::string not_shared_reason() const = 0;
  // A new network with weights drawn from LibTorch's default generator. Targets are tokens, unless
  // the kind of answers supports others. Error if the type does not support the source.
  virtual std::shared_ptr<PairNetwork> make_network(const SourceShape& source,
                                                    const TargetShape& target) const = 0;
};

// A NetworkConfig implemented by a struct with settings(), check() and maximum_source_length
// (member or function). The struct may implement the other functions under the same names;
// otherwise defaults apply.
template <class Config>
class NetworkConfigOf final : public NetworkConfig {
 public:
  using Make = std::shared_ptr<PairNetwork> (*)(const Config&, const SourceShape&,
                                                const TargetShape& target);

  explicit NetworkConfigOf(Make make) : make_(make) {}

  std::unique_ptr<NetworkConfig> clone() const override {
    return std::make_unique<NetworkConfigOf>(*this);
  }
  Settings settings() override { return config.settings(); }
  Settings weight_settings() override {
    if constexpr (requires { config.weight_settings(); })
      return config.weight_settings();
    else
      return {};
  }
  void check() const override { config.check(); }
  int64_t maximum_source_length() const override {
    if constexpr (requires { config.maximum_source_length(); })
      return config.maximum_source_length();
    else
      return config.maximum_source_length;
  }
  int64_t maximum_target_length() const override {
    if constexpr (requires { config.maximum_target_length(); })
      return config.maximum_target_length();
    else
      return longest_answer(maximum_source_length());
  }
  int64_t context() const override {
    if constexpr (requires { config.context; })
      return config.context;
    else
      return 0;
  }
  int64_t overlap() const override {
    if constexpr (requires { config.overlap; })
      return config.overlap;
    else
      return 0;
  }
  bool wants_joint_vocabulary() const override {
    if constexpr (requires { config.wants_joint_vocabulary(); })
      return config.wants_joint_vocabulary();
    else
      return false;
  }
  bool takes_first_vector() const override {
    if constexpr (requires { config.takes_first_vector(); })
      return config.takes_first_vector();
    else
      return false;
  }
  std::string no_weights_reason() const override {
    if constexpr (requires { config.no_weights_reason(); })
      return config.no_weights_reason();
    else
      return "model.score = none";
  }
  std::string unused_mechanism_reason() const override {
    if constexpr (requires { config.unused_mechanism_reason(); })
      return config.unused_mechanism_reason();
    else
      return "";
  }
  std::string not_shared_reason() const override {
    if constexpr (requires { config.not_shared_reason(); })
      return config.not_shared_reason();
    else
      return "models of this type compute whole sequences; transformer and lm can";
  }
  std::shared_ptr<PairNetwork> make_network(const SourceShape& source,
                                            const TargetShape& target) const override {
    return make_(config, source, target);
  }

  Config config;

 private:
  Make make_;
};

// One row of the table of model types.
struct ModelType {
  std::string name;     // model.type
  std::string summary;  // for help texts, after the name
  const AnswerKind* answers = &sequence_answers();
  // Name of a source token in the error for a token that was not in training; empty: it is
  // read as unknown.
  std::string_view known_source = {};
  bool reads_pairs = false;  // sources may be pairs of texts (PairForm)
  // Defaults for reading texts and for training.
  TextConfig text = {};
  double label_smoothing = 0.1;                          // train.label_smoothing
  std::unique_ptr<NetworkConfig> (*config)() = nullptr;  // creates the default settings
};

// All types; types of the library come first.
const std::vector<const ModelType*>& model_types();

// The row of the type. Error if the type does not exist; the message lists all names.
const ModelType& model_type(std::string_view name);

// Adds a type for the rest of the process; configurations and model folders may then name it in
// model.type. Not safe while other threads use models. Error if the name is taken.
void register_model_type(ModelType type);

}  // namespace attend
