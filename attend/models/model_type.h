#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/settings.h"
#include "attend/data/text_config.h"

namespace attend {

class PairNetwork;
struct SourceShape;

// What a type of model makes of a source.
enum class Answers {
  sequence,      // another sequence
  label,         // one of the labels of training
  continuation,  // the text that follows; it learns from texts, and its vocabularies are one
  filled,        // the source, with what is hidden of it filled in; it learns from texts
  tags,          // a label for each token of the source
  vectors,       // those of its tokens, and no text; it learns nothing by itself
  item,          // the one that follows those of the source, of all that are ranked; it learns from
                 // interactions, and its vocabularies are one
};

// Where a decoder that does not end its answer is stopped, in tokens; no pair in practice is near
// this.
int64_t longest_answer(int64_t source_tokens);

// The settings of one type of model and the network that they describe.
class NetworkConfig {
 public:
  virtual ~NetworkConfig() = default;

  virtual std::unique_ptr<NetworkConfig> clone() const = 0;
  virtual Settings settings() = 0;  // keys model.*
  // Those of settings() without which weights mean nothing: a model that begins with the weights of
  // another has their values.
  virtual Settings weight_settings() = 0;
  virtual void check() const = 0;                     // Error when they describe no network
  virtual int64_t maximum_source_length() const = 0;  // tokens of a source that are read
  virtual int64_t maximum_target_length() const = 0;  // tokens of a target that training takes
  virtual int64_t context() const = 0;  // tokens of a text that are seen at once; 0: no such
  virtual bool wants_joint_vocabulary() const = 0;  // of sources and targets
  // Whether a text's vector is its first token's; otherwise it is the mean of all.
  virtual bool takes_first_vector() const = 0;
  // The setting by which the network has no attention to show, where it has none.
  virtual std::string why_no_weights() const = 0;
  // Why processes cannot share the sequences of its objective (Pass::world); empty where they can.
  virtual std::string why_not_shared() const = 0;
  // A new network, its weights drawn from LibTorch's default generator. `target_tokens` may be
  // number_targets where the type answers labels otherwise. Error on a source that the type does
  // not read.
  virtual std::shared_ptr<PairNetwork> make_network(const SourceShape& source,
                                                    int64_t target_tokens) const = 0;
};

// The same made of a struct with settings(), check() and maximum_source_length, a member or a
// function. What else a NetworkConfig says the struct may have under the same name.
template <class Config>
class NetworkConfigOf final : public NetworkConfig {
 public:
  using Make = std::shared_ptr<PairNetwork> (*)(const Config&, const SourceShape&,
                                                int64_t target_tokens);

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
  std::string why_no_weights() const override {
    if constexpr (requires { config.why_no_weights(); })
      return config.why_no_weights();
    else
      return "model.score = none";
  }
  std::string why_not_shared() const override {
    if constexpr (requires { config.why_not_shared(); })
      return config.why_not_shared();
    else
      return "models of this type compute whole sequences; transformer and lm can";
  }
  std::shared_ptr<PairNetwork> make_network(const SourceShape& source,
                                            int64_t target_tokens) const override {
    return make_(config, source, target_tokens);
  }

  Config config;

 private:
  Make make_;
};

// One row of the table of model types.
struct ModelType {
  std::string name;     // model.type
  std::string summary;  // for help texts, behind the name
  Answers answers = Answers::sequence;
  // What a token of a source is called where one that was not in training is refused; empty: it is
  // read as unknown.
  std::string_view known_source = {};
  // Defaults: how texts are read, and what training minds.
  TextConfig text = {};
  std::string metric = "token_error";                    // train.metric
  double label_smoothing = 0.1;                          // train.label_smoothing
  std::unique_ptr<NetworkConfig> (*config)() = nullptr;  // with the defaults

  bool learns_from_text() const {
    return answers == Answers::continuation || answers == Answers::filled;
  }
  // An answer has one token for each of its source, at the same place.
  bool is_tokenwise() const { return answers == Answers::filled || answers == Answers::tags; }
  // The tokens of targets are labels, all of which are in training.
  bool has_labels() const { return answers == Answers::label || answers == Answers::tags; }
};

// Every type, those of the library first.
const std::vector<const ModelType*>& model_types();

// The row of that name. Error, with all names, where there is none.
const ModelType& model_type(std::string_view name);

// Adds a type for the rest of the process: model.type may then name it in configurations and model
// folders. Not while other threads use models. Error on a name that is taken.
void register_model_type(ModelType type);

}  // namespace attend
