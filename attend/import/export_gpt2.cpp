#include "attend/base/error.h"
#include "attend/import/config_keys-inl.h"
#include "attend/import/conversion-inl.h"
#include "attend/import/export-inl.h"
#include "attend/import/generation-inl.h"
#include "attend/models/language_model_config.h"

namespace attend::internal {
namespace {

using at::Tensor;

// Their ids of the tokens that end and begin a text.
struct Ends {
  int64_t end, begin;
};

// Returns the only token that is never answered, which EOS replaces. GPT-2 has no other scores of
// tokens.
int64_t end_of_texts(const PairModel& model, const ExportedTokens& tokens,
                     const std::string& folder) {
  const auto parameters = model.network->named_parameters();
  const Tensor* scores = parameters.find("output_bias");
  if (scores == nullptr)
    fail("{}: model.output_bias is false or model.tied; models that came from GPT-2 are exported",
         folder);
  const Tensor token_scores = scores->index_select(0, at::tensor(tokens.biases, at::kLong));
  const Tensor never = (token_scores == never_answered).nonzero();
  const bool is_one = never.size(0) == 1;
  if (!is_one || token_scores.count_nonzero().item<int64_t>() != 1 ||
      (*scores)[Vocabulary::eos].item<double>() != 0)
    fail(
        "{}: output_bias holds token scores from training, and GPT-2 lacks them; train a new "
        "import, which has model.fixed_output_bias = true",
        folder);
  return never.item<int64_t>();
}

// Without model.shared_tokens, finds the tokens by their vectors, which the fixed tokens repeat.
Ends ends_of(const PairModel& model, const LanguageModelConfig& ours, const ExportedTokens& tokens,
             const std::string& folder) {
  const int64_t end = end_of_texts(model, tokens, folder);
  if (const std::vector<int64_t> shared = ours.shared(); !shared.empty()) {
    if (shared[Vocabulary::eos] != end)
      fail("{}: model.shared_tokens is {}, and token {} ends answers; write it as the third",
           folder, in_quotes(ours.shared_tokens), end);
    return {end, shared[Vocabulary::bos]};
  }
  const Tensor vectors = model.network->named_parameters()["embedding.tokens.weight"];
  const Tensor theirs = vectors.index_select(0, at::tensor(tokens.vectors, at::kLong));
  const Tensor begins = (theirs == vectors[Vocabulary::bos]).all(1).nonzero();
  if (!theirs[end].equal(vectors[Vocabulary::eos]) || begins.size(0) == 0)
    fail(
        "{}: the end token has different vectors as input and as output after training, and GPT-2 "
        "has one; train a new import, which has model.shared_tokens",
        folder);
  const bool is_end = theirs[end].equal(vectors[Vocabulary::bos]);
  return {end, is_end ? end : begins[0].item<int64_t>()};
}

}  // namespace

ExportedFolder exported_gpt2(const PairModel& model, const std::string& folder) {
  const ExportedTokens tokens = exported_tokens(model, folder);
  ModelConfig config = model.config;
  const auto& ours = config.of<LanguageModelConfig>();
  const auto [end, begin] = ends_of(model, ours, tokens, folder);
  ExportedFolder made{.architecture = "GPT2LMHeadModel",
                      .config = {{"architectures", Json::array({"GPT2LMHeadModel"})},
                                 {"model_type", "gpt2"},
                                 {"n_embd", ours.depth},
                                 {"n_layer", ours.layers},
                                 {"n_head", ours.heads},
                                 {"n_inner", ours.feed_forward},
                                 {"n_positions", ours.context},
                                 {"activation_function", activation_name(ours.activation)},
                                 {"layer_norm_epsilon", ours.epsilon},
                                 {"resid_pdrop", ours.dropout},
                                 {"embd_pdrop", ours.dropout},
                                 {"attn_pdrop", ours.attention_dropout},
                                 {"vocab_size", std::ssize(tokens.vectors)},
                                 {"bos_token_id", begin},
                                 {"eos_token_id", end}}};
  made.again = read_again(made.config, read_gpt2);
  made.end = end;
  add_exported(model, tokens, made);
  add_tokenizer_config(model, tokens, made);
  made.documents["tokenizer_config.json"]["model_max_length"] = ours.context;
  Json& generation = made.documents["generation_config.json"];
  generation = exported_generation(model.decode, {.end = end, .continues = true});
  generation["bos_token_id"] = begin;
  return made;
}

}  // namespace attend::internal
