#include "attend/models/new_pair_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "attend/base/error.h"
#include "attend/models/model_size.h"

namespace attend {
namespace {

std::string shown_labels(const Vocabulary& labels) {
  return shown_tokens(labels, [](const std::string&) { return true; });
}

// For example "x.tsv: training lacks 2 labels of 3 targets ..".
std::string unknown_labels_remark(const std::string& name, int64_t count, int64_t labels,
                                  const std::string& first) {
  return fmt::format(
      "{}: training lacks {} label{} of {} target{} (first {}); every answer to them is wrong, and "
      "the loss leaves them out",
      name, labels, labels == 1 ? "" : "s", count, count == 1 ? "" : "s", first);
}

}  // namespace

void TokenCounts::add_graph(const SplitData& nodes) {
  graph = nodes.graph;
  int64_t count = std::ssize(nodes.names);
  for (const std::string& name : nodes.names) source[name] = count--;
}

// A text counts once per occurrence, for example a source with two targets.
void TokenCounts::add(const Example& example, const TextCodecs& codecs) {
  for (const std::string& token : codecs.source.split(example.source)) ++source[token];
  for (const std::string& text : example.targets)
    for (const std::string& token : codecs.target.split(text)) ++target[token];
}

void TokenCounts::add_text(const std::string& text, const TextCodec& codec) {
  codec.for_each_line(text, [&](const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) ++target[token];
  });
}

PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const TokenisedExamples& tokenised) {
  TextConfig sized = text;
  if (const SourceKind* kind = text.source_kind(); kind != nullptr)
    kind->measure(tokenised.examples.at(0).source, sized.frames);
  return make_pair_model(sized, model,
                         TokenCounts{tokenised.sources.counts(), tokenised.targets.counts()});
}

PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const std::vector<Example>& examples) {
  return make_pair_model(text, model, tokenise_examples(examples, make_codecs(text)));
}

PairModel make_pair_model(const TextConfig& text, const ModelConfig& model,
                          const TokenCounts& counts) {
  const AnswerKind& kind = model.answer_kind(text);
  // Equal sizes do not imply equal vocabularies.
  if (model.chosen().wants_joint_vocabulary() && !text.joint_vocabulary)
    fail(
        "model.tied is all or inputs, or model.copy true, which takes one vocabulary; set "
        "data.joint_vocabulary = true");
  kind.check_text(text, model.type);
  PairModel result{text, make_codecs(text), model, {}, {}, {}, nullptr};
  kind.measure(counts.target, result.text);
  result.graph = counts.graph;
  const auto& [source, target] = result.codecs;
  const WordCounts sources = source.names_file ? WordCounts{} : counts.source;
  if (text.joint_vocabulary) {
    WordCounts both = sources;
    for (const auto& [token, count] : counts.target) both[token] += count;
    // At least one of the alphabets is empty, or they are equal.
    result.source_vocabulary = result.target_vocabulary = make_vocabulary(
        std::move(both), std::max(source.alphabet(), target.alphabet()), text.minimum_count);
  } else {
    result.source_vocabulary = make_vocabulary(sources, source.alphabet(),
                                               counts.graph != nullptr ? 1 : text.minimum_count);
    result.target_vocabulary =
        kind.target_vocabulary(counts.target, target, text, result.source_vocabulary);
  }
  check_memory(result);
  result.network = result.make_network();
  return result;
}

PairCheck label_check(const TextConfig& text, const ModelConfig& model) {
  const AnswerKind& kind = model.answer_kind(text);
  if (!kind.has_labels()) return nullptr;
  return [text, &kind, codecs = make_codecs(text)](const std::string& source,
                                                   const std::string& target) {
    const int64_t tokens = kind.is_tokenwise() ? std::ssize(codecs.source.split(source)) : 0;
    kind.check_labels(std::ssize(codecs.target.split(target)), tokens, source, target, text);
  };
}

bool check_labels(const PairModel& model, const TokenisedExamples& tokenised,
                  const std::string& name, const Tell& remark) {
  const AnswerKind& kind = model.answer_kind();
  if (!kind.has_labels()) return true;
  const std::vector<std::string>& spelled = tokenised.targets.tokens();
  const std::vector<int64_t> ids = model.target_vocabulary.encode(spelled);
  std::set<std::string> unknown;
  int64_t count = 0, next = 0;
  bool knows_one = false;
  std::string first;
  for (size_t i = 0; i < tokenised.examples.size(); ++i) {
    const Example& example = tokenised.examples[i];
    const std::string place = example.line > 0 ? fmt::format("{}:{}", name, example.line) : name;
    for (const std::string& target : example.targets) {
      const auto tokens = tokenised.targets[next++];
      const int64_t read =
          kind.is_tokenwise() ? std::ssize(tokenised.sources[static_cast<int64_t>(i)]) : 0;
      try {
        kind.check_labels(std::ssize(tokens), read, example.source, target, model.text);
      } catch (const Error& error) {
        fail("{}: {}", place, error.what());
      }
      for (const int32_t token : tokens) {
        const auto number = static_cast<size_t>(token);
        if (ids[number] != Vocabulary::unknown) {
          knows_one = true;
          continue;
        }
        if (!remark)
          fail("{}: label {} of {} was not in training; the training labels are {}", place,
               in_quotes(spelled[number]), in_quotes(example.source),
               shown_labels(model.target_vocabulary));
        if (++count == 1) first = fmt::format("{} in {}", in_quotes(spelled[number]), place);
        unknown.insert(spelled[number]);
      }
    }
  }
  if (count > 0) remark(unknown_labels_remark(name, count, std::ssize(unknown), first));
  return knows_one || count == 0;
}

}  // namespace attend
