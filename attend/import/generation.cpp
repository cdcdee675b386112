#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "attend/import/config_keys-inl.h"
#include "attend/import/generation-inl.h"

namespace attend::internal {
namespace {

// Keys that change answers but have no setting here, and their neutral values.
struct NeutralKey {
  const char* name;
  const char* neutral;  // as JSON
};

constexpr NeutralKey unhonoured_keys[] = {
    {"repetition_penalty", "1.0"},
    {"encoder_repetition_penalty", "1.0"},
    {"no_repeat_ngram_size", "0"},
    {"encoder_no_repeat_ngram_size", "0"},
    {"suppress_tokens", "[]"},
    {"begin_suppress_tokens", "[]"},
    {"forced_decoder_ids", "null"},
    {"do_sample", "false"},
    {"num_beam_groups", "1"},
    {"diversity_penalty", "0.0"},
    {"penalty_alpha", "0.0"},
    {"dola_layers", "null"},
    {"exponential_decay_length_penalty", "null"},
    {"sequence_bias", "null"},
    {"guidance_scale", "1.0"},
    {"constraints", "null"},
    {"force_words_ids", "null"},
    {"stop_strings", "null"},
    {"max_time", "null"},
    {"token_healing", "false"},
    {"watermarking_config", "null"},
    {"num_return_sequences", "1"},
};

// Keys of beam search, which change nothing without it.
constexpr const char* forced_first = "forced_bos_token_id";

constexpr NeutralKey beam_keys[] = {{"early_stopping", "false"}, {"renormalize_logits", "false"}};

// Other known keys: read elsewhere, or without effect on answers that are not sampled.
constexpr std::string_view other_keys[] = {"_from_model_config",
                                           "transformers_version",
                                           "use_cache",
                                           "pad_token_id",
                                           "bos_token_id",
                                           "eos_token_id",
                                           "top_k",
                                           "decoder_start_token_id",
                                           "output_scores",
                                           "output_attentions",
                                           "output_logits",
                                           "output_hidden_states",
                                           "temperature",
                                           "top_p",
                                           "min_p",
                                           "return_dict_in_generate",
                                           "typical_p",
                                           "top_h",
                                           "epsilon_cutoff",
                                           "eta_cutoff",
                                           "num_beams",
                                           "length_penalty",
                                           "min_length",
                                           "min_new_tokens",
                                           "max_length",
                                           "max_new_tokens",
                                           "bad_words_ids",
                                           "forced_eos_token_id",
                                           forced_first,
                                           "cache_config",
                                           "compile_config",
                                           "low_memory",
                                           "cache_implementation",
                                           "disable_compile",
                                           "remove_invalid_values"};

class GenerationReader {
 public:
  GenerationReader(const JsonPosition& settings, bool is_own_file, ForeignModel& model)
      : settings_(settings), is_own_file_(is_own_file), model_(model) {}

  void read() {
    read_beam();
    read_length_penalty();
    read_lengths();
    read_bad_words();
    read_first();
    for (const NeutralKey& key : unhonoured_keys) leave_aside(key);
    if (is_own_file_) leave_unknown_aside();
    if (model_.decode.beam > 1)
      for (const NeutralKey& key : beam_keys) leave_aside(key);
  }

  void tell() {
    if (!honoured_.empty())
      model_.notes.push_back(fmt::format("{}: {}", settings_.file(), fmt::join(honoured_, ", ")));
    if (!unhonoured_.empty())
      model_.notes.push_back(fmt::format(
          "{}: answers may differ from transformers, because these are not supported: {}",
          settings_.file(), fmt::join(unhonoured_, ", ")));
  }

 private:
  static bool is_known(const std::string& name) {
    const auto has = [&](const NeutralKey& key) { return name == key.name; };
    return std::find(std::begin(other_keys), std::end(other_keys), name) != std::end(other_keys) ||
           std::any_of(std::begin(unhonoured_keys), std::end(unhonoured_keys), has) ||
           std::any_of(std::begin(beam_keys), std::end(beam_keys), has);
  }

  // Unknown keys may change answers.
  void leave_unknown_aside() {
    for (const auto& [name, value] : settings_.value().items())
      if (!value.is_null() && !is_known(name)) add(unhonoured_, name);
  }

  // Configurations of some types have this key by default.
  bool has_forced_end() const {
    constexpr const char* key = "forced_eos_token_id";
    if (settings_.value().contains(key)) return settings_.has(key);
    return !is_own_file_ && model_.forces_end;
  }

  bool continues() const { return model_.config.row().answers->continues(); }

  void add(std::vector<std::string>& list, const std::string& name) {
    list.push_back(fmt::format("{} = {}", name, shown(settings_.member(name.c_str()).value())));
  }

  void leave_aside(const NeutralKey& key) {
    if (settings_.has(key.name) && settings_.member(key.name).value() != Json::parse(key.neutral))
      add(unhonoured_, key.name);
  }

  void honour(const char* name, const std::string& setting) {
    honoured_.push_back(
        fmt::format("{} = {} becomes {}", name, shown(settings_.member(name).value()), setting));
  }

  void read_beam() {
    const int64_t beam = settings_.number("num_beams", 1);
    if (beam < 1 || beam > 1000) return add(unhonoured_, "num_beams");
    model_.decode.beam = beam;
    if (beam > 1) honour("num_beams", fmt::format("decode.beam = {}", beam));
  }

  // The token that an answer begins with is known only for languages.
  void read_first() {
    if (!settings_.has(forced_first)) return;
    if (!model_.answers_in_languages()) return add(unhonoured_, forced_first);
    const int64_t token = settings_.member(forced_first).number();
    if (token >= model_.tokens)
      settings_.member(forced_first).refuse("is {}, and vocab_size is {}", token, model_.tokens);
    model_.first_token = token;
  }

  // The language of an answer is not part of our lengths.
  int64_t first_tokens() const { return model_.answers_in_languages() ? 1 : 0; }

  void read_length_penalty() {
    const double penalty = settings_.real("length_penalty", 1);
    if (penalty == 1) return;
    if (!(penalty >= 0 && penalty <= 10)) return add(unhonoured_, "length_penalty");
    model_.decode.length_penalty = penalty;
    honour("length_penalty", fmt::format("decode.length_penalty = {}", penalty));
  }

  // For translations, max_length of transformers counts the token that begins an answer. Both
  // lengths count the end that forced_eos_token_id puts in the last place. For continuations,
  // max_length counts the continued text, too.
  void read_lengths() {
    constexpr int64_t maximum = 1'000'000;
    const int64_t end = has_forced_end() ? 1 : 0;
    for (const char* name : {"max_new_tokens", "max_length"}) {
      if (!settings_.has(name)) continue;
      const bool is_new = std::string_view(name) == "max_new_tokens";
      const int64_t length =
          settings_.member(name).number() - (is_new ? 0 : 1) - first_tokens() - end;
      if ((continues() && !is_new) || length < 1 || length > maximum) {
        add(unhonoured_, name);
        continue;
      }
      model_.decode.maximum_length = length;
      honour(name, fmt::format("decode.maximum_length = {}", length));
      break;
    }
    read_minimum();
  }

  void read_minimum() {
    constexpr int64_t maximum = 1'000'000;
    for (const char* name : {"min_new_tokens", "min_length"}) {
      const bool is_new = std::string_view(name) == "min_new_tokens";
      const int64_t length = settings_.number(name, 0) - (is_new ? 0 : 1) - first_tokens();
      if (length < 1) continue;
      const bool is_over =
          model_.decode.maximum_length > 0 && length > model_.decode.maximum_length;
      if ((continues() && !is_new) || length > maximum || is_over) {
        add(unhonoured_, name);
        continue;
      }
      model_.decode.minimum_length = length;
      honour(name, fmt::format("decode.minimum_length = {}", length));
      break;
    }
  }

  // Padding is never answered.
  void read_bad_words() {
    if (!settings_.has("bad_words_ids")) return;
    const auto& padding = model_.fixed->scores[0];
    for (const Json& word : settings_.member("bad_words_ids").value())
      if (!padding || word != Json::array({*padding})) return add(unhonoured_, "bad_words_ids");
  }

  const JsonPosition& settings_;
  bool is_own_file_;
  ForeignModel& model_;
  std::vector<std::string> honoured_, unhonoured_;
};

}  // namespace

void take_generation_tokens(const std::optional<JsonFile>& generation, JsonFile& config) {
  if (!generation) return;
  const JsonPosition place = generation->place();
  for (const char* name : {"bos_token_id", "eos_token_id", "decoder_start_token_id"})
    if (place.has(name)) config.json[name] = place.member(name).value();
}

void read_generation(const JsonPosition& settings, bool is_own_file, ForeignModel& model) {
  GenerationReader reader(settings, is_own_file, model);
  reader.read();
  reader.tell();
}

Json exported_generation(const SearchOptions& decode, const ExportedAnswers& answers) {
  Json keys = {{"eos_token_id", answers.end}};
  if (decode.beam > 1) {
    keys["num_beams"] = decode.beam;
    // Without beams transformers does not save a folder that has it.
    if (decode.length_penalty != 1) keys["length_penalty"] = decode.length_penalty;
  }
  if (answers.continues) {
    if (decode.maximum_length > 0) keys["max_new_tokens"] = decode.maximum_length;
    if (decode.minimum_length > 0) keys["min_new_tokens"] = decode.minimum_length;
    return keys;
  }
  if (decode.maximum_length > 0) {
    // The start token, and the end.
    keys["max_length"] = decode.maximum_length + answers.first_tokens + 2;
    keys["forced_eos_token_id"] = answers.end;
  }
  if (decode.minimum_length > 0)
    keys["min_length"] = decode.minimum_length + answers.first_tokens + 1;
  return keys;
}

}  // namespace attend::internal
