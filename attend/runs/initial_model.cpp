#include "attend/runs/initial_model.h"

#include <fmt/format.h>

#include "attend/base/error.h"
#include "attend/models/initial_weights.h"
#include "attend/models/model_folder.h"
#include "attend/models/model_size.h"

namespace attend {
namespace {

// `side` is "source ", "target " or, of a vocabulary of both, empty.
// Puts the tokens of the initial model in the place of those of the data, or before them.
void take_tokens(const Vocabulary& initial, const TrainOptions& options, const std::string& side,
                 Vocabulary& data, const Say& say) {
  const int64_t all = data.size() - Vocabulary::unknown - 1;
  Vocabulary both = initial;
  const int64_t more = both.extend(data);
  const bool extends = options.init_vocabulary == InitVocabulary::extend;
  if (more > 0)
    say(fmt::format(
        "{} of {} {}tokens are not in {}, and {}: {}", more, all, side, options.init,
        extends ? "begin with new weights" : "are read as <unk>, as --init-vocabulary keep says",
        shown_tokens(data, [&](const std::string& token) {
          return initial.id(token) == Vocabulary::unknown;
        })));
  data = extends ? both : initial;
}

}  // namespace

InitialModel load_initial_model(const std::string& folder, RunConfig& config) {
  InitialModel initial{folder, load_description(folder)};
  const TextConfig own = config.text;
  config.text = initial.model.text;
  config.text.target = own.target;
  config.text.target_scale = own.target_scale;
  if (config.text.source_units != own.source_units)
    fail("--init {}: reads sources by {}; set data.source_units = {} here too", folder,
         config.text.source_units, config.text.source_units);
  initial.same_type =
      initial.model.config.type == config.model.type && !config.model.row().has_labels();
  if (initial.same_type) return initial;
  config.text.target_units = own.target_units;
  config.text.target_bpe = own.target_bpe;
  config.text.target_tokenizer = own.target_tokenizer;
  config.text.joint_vocabulary = own.joint_vocabulary;
  return initial;
}

void begin_from(const InitialModel& initial, const TrainOptions& options, PairModel& model,
                const Say& say) {
  const auto& [folder, other, same_type] = initial;
  const bool is_one = model.text.joint_vocabulary || model.config.fills();
  // Other nodes have the same weights.
  if (!model.codecs.source.names_file && model.graph == nullptr)
    take_tokens(other.source_vocabulary, options, is_one ? "" : "source ", model.source_vocabulary,
                say);
  if (is_one)
    model.target_vocabulary = model.source_vocabulary;
  else if (same_type)
    take_tokens(other.target_vocabulary, options, "target ", model.target_vocabulary, say);
  check_memory(model);
  model.network = model.make_network();
  const auto all = static_cast<int64_t>(model.network->parameters().size());
  const int64_t taken = load_initial_weights(model, other, folder + "/weights.safetensors");
  if (taken == 0)
    fail("--init {}: none of its weights has the name and shape of one of this model", folder);
  say(fmt::format("{} of {} weights begin as in {}", taken, all, folder));
}

}  // namespace attend
