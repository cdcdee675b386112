#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "attend/serve/generation-inl.h"

namespace attend::internal {
namespace {

constexpr double max_length_penalty = 10;

[[noreturn]] void refuse_generation(const char* field, const std::string& message) {
  throw RequestError(422, message, field, "invalid_value");
}

}  // namespace

std::vector<RequestField> GenerationFields::fields() {
  std::vector<RequestField> all = {
      {"max_new_tokens", &longest_new, 1, max_answer_tokens},
      {"max_length", &longest, 2, max_answer_tokens},
      {"min_new_tokens", &shortest_new, 0, max_answer_tokens},
      {"min_length", &shortest, 0, max_answer_tokens},
      {"num_beams", &beam, 1, max_answers},
      {"length_penalty", &length_penalty, 0, max_length_penalty},
      {"do_sample", &draws},
      {"seed", &seed, 0, max_seed},
  };
  for (const Setting& setting : sampling.settings())
    all.push_back(request_field(setting, setting.maximum, /*has_default=*/false));
  for (RequestField& field : all) {
    field.is_nullable = true;
    field.has_default = false;
  }
  return all;
}

SearchOptions GenerationFields::options(const Model& model,
                                        const std::set<std::string>& given) const {
  SearchOptions options = model.search_options();
  options.beam = given.contains("num_beams") ? beam : std::min<int64_t>(options.beam, max_answers);
  if (given.contains("length_penalty")) options.length_penalty = length_penalty;
  model.answer_kind().fit(options);
  set_lengths(model, given, options);
  set_sampling(given, options);
  return options;
}

// max_length and min_length also count the token that begins an answer.
void GenerationFields::set_lengths(const Model& model, const std::set<std::string>& given,
                                   SearchOptions& options) const {
  for (const auto& [name, other] :
       {std::pair{"max_length", "max_new_tokens"}, {"min_length", "min_new_tokens"}}) {
    if (!given.contains(name)) continue;
    if (given.contains(other))
      refuse_generation(name,
                        fmt::format("{} and {} limit the same; send one of them", other, name));
    if (model.answer_kind().continues())
      refuse_generation(
          name, fmt::format("{} would also count the continued text; send {}", name, other));
  }
  SearchOptions own = options;
  own.maximum_length = std::min<int64_t>(own.maximum_length, max_answer_tokens);
  own.minimum_length = std::min<int64_t>(own.minimum_length, max_answer_tokens);
  const bool has_longest = given.contains("max_length") || given.contains("max_new_tokens");
  const bool has_shortest = given.contains("min_length") || given.contains("min_new_tokens");
  options.maximum_length = given.contains("max_length") ? longest - 1 : longest_new;
  options.minimum_length =
      given.contains("min_length") ? std::max<int64_t>(shortest - 1, 0) : shortest_new;
  options.take_lengths(own, has_shortest, has_longest);
}

void GenerationFields::set_sampling(const std::set<std::string>& given,
                                    SearchOptions& options) const {
  const char* chosen = nullptr;
  for (const char* name : {"temperature", "top_k", "top_p"})
    if (given.contains(name)) chosen = name;
  if (given.contains("do_sample") && !draws && chosen != nullptr)
    refuse_generation(
        chosen, fmt::format("{} is for sampling, and do_sample is false; leave one of the two "
                            "out",
                            chosen));
  if (!draws && chosen == nullptr) return;
  if (given.contains("num_beams") && beam > 1)
    refuse_generation("num_beams",
                      "answers are sampled or searched for; leave num_beams or do_sample, "
                      "temperature, top_k and top_p out");
  options.beam = 1;
  options.sampling = sampling;
  options.sampling->seed =
      given.contains("seed") ? static_cast<uint64_t>(seed) : std::random_device()();
}

}  // namespace attend::internal
