#include "attend/runs/initial_model.h"

#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/models/initial_weights.h"
#include "attend/models/model_folder.h"
#include "attend/models/model_size.h"

namespace attend {
namespace {

// Replaces the vocabulary of the data by the initial model's, extended by the data's if the options
// say so. `side` is "source ", "target " or, for a joint vocabulary, empty.
void take_tokens(const Vocabulary& initial, const TrainOptions& options, const std::string& side,
                 Vocabulary& data, const Say& say) {
  const int64_t all = data.size() - Vocabulary::unknown - 1;
  Vocabulary both = initial;
  const int64_t more = both.extend(data);
  const bool extends = options.init_vocabulary == InitVocabulary::extend;
  if (more > 0)
    say(fmt::format(
        "{} of {} {}tokens are not in {}, and {}: {}", more, all, side, options.init,
        extends ? "begin with new weights" : "are read as <unk>, because of --init-vocabulary keep",
        shown_tokens(data, [&](const std::string& token) {
          return initial.id(token) == Vocabulary::unknown;
        })));
  data = extends ? both : initial;
}

// Labels always come from the data.
void tell_labels(const Vocabulary& initial, const Vocabulary& data, const std::string& folder,
                 const Say& say) {
  const auto tell = [&](const Vocabulary& all, const Vocabulary& others, const std::string& what) {
    const auto is_other = [&](const std::string& label) {
      return others.id(label) == Vocabulary::unknown;
    };
    if (const std::string labels = shown_tokens(all, is_other); !labels.empty())
      say(fmt::format("{}: {}", what, labels));
  };
  tell(data, initial, fmt::format("labels that are not in {} begin with new weights", folder));
  tell(initial, data, fmt::format("labels of {} that the data does not have are left out", folder));
}

}  // namespace

void begin_from(const InitialModel& initial, const TrainOptions& options, PairModel& model,
                const Say& say) {
  const auto& [folder, other] = initial;
  const bool is_one = model.has_one_vocabulary();
  // Weights do not depend on the nodes.
  if (!model.codecs.source.names_file && model.graph == nullptr)
    take_tokens(other.source_vocabulary, options, is_one ? "" : "source ", model.source_vocabulary,
                say);
  if (is_one)
    model.target_vocabulary = model.source_vocabulary;
  else if (takes_target_tokens(other, model.config))
    take_tokens(other.target_vocabulary, options, "target ", model.target_vocabulary, say);
  else if (other.config.type == model.config.type && model.answer_kind().has_labels() &&
           other.answer_kind().has_labels())
    tell_labels(other.target_vocabulary, model.target_vocabulary, folder, say);
  if (other.config.type == model.config.type) model.decode = other.decode;
  check_memory(model);
  model.network = model.make_network();
  const auto all = static_cast<int64_t>(model.network->parameters().size());
  const int64_t taken = load_initial_weights(model, other, folder + "/weights.safetensors");
  if (taken == 0)
    fail("--init {}: none of its weights has the name and shape of one of this model", folder);
  say(fmt::format("{} of {} weights begin as in {}", taken, all, folder));
}

}  // namespace attend
