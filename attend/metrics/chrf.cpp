#include "attend/metrics/chrf.h"

#include <algorithm>

#include "attend/base/error.h"
#include "attend/metrics/ngrams-inl.h"

namespace attend {
namespace {

using internal::NgramCounts;

bool is_punctuation(const std::string& character) {
  static constexpr std::string_view marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  return character.size() == 1 && marks.find(character[0]) != std::string_view::npos;
}

// Words, with one punctuation mark split off: the last character, or else the first.
std::vector<std::string> words_and_marks(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& word : internal::words_of(text)) {
    const auto characters = internal::characters_of(word);
    const std::string& first = characters.front();
    const std::string& last = characters.back();
    if (characters.size() > 1 && is_punctuation(last)) {
      words.push_back(word.substr(0, word.size() - last.size()));
      words.push_back(last);
    } else if (characters.size() > 1 && is_punctuation(first)) {
      words.push_back(first);
      words.push_back(word.substr(first.size()));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

// N-grams of each order: characters first, then words.
std::vector<NgramCounts> all_ngrams(std::string_view original, const ChrfOptions& options) {
  const std::string text =
      options.lowercase ? internal::lower_case(original) : std::string(original);
  const auto characters = internal::characters_of(
      options.white_space ? text : fmt::format("{}", fmt::join(internal::words_of(text), "")));
  std::vector<NgramCounts> ngrams;
  ngrams.reserve(static_cast<size_t>(options.character_order + options.word_order));
  for (int64_t n = 1; n <= options.character_order; ++n)
    ngrams.push_back(internal::count_ngrams(characters, static_cast<size_t>(n), ""));
  if (options.word_order == 0) return ngrams;
  const auto words = words_and_marks(text);
  for (int64_t n = 1; n <= options.word_order; ++n)
    ngrams.push_back(internal::count_ngrams(words, static_cast<size_t>(n), " "));
  return ngrams;
}

int64_t total(const NgramCounts& ngrams) {
  int64_t sum = 0;
  for (const auto& [ngram, count] : ngrams) sum += count;
  return sum;
}

}  // namespace

void ChrfOptions::check() const {
  const auto within = [](const char* name, int64_t value, int64_t least) {
    constexpr int64_t maximum = 100;
    if (value < least || value > maximum)
      fail("[chrf] {} must be {} to {}, got {}", name, least, maximum, value);
  };
  within("character_order", character_order, 1);
  within("word_order", word_order, 0);
  within("beta", beta, 1);
}

ChrfCounts& ChrfCounts::operator+=(const ChrfCounts& other) {
  if (orders.size() < other.orders.size()) orders.resize(other.orders.size());
  for (size_t n = 0; n < other.orders.size(); ++n) {
    orders[n].hypothesis += other.orders[n].hypothesis;
    orders[n].reference += other.orders[n].reference;
    orders[n].matches += other.orders[n].matches;
  }
  return *this;
}

ChrfCounts count_chrf(std::string_view hypothesis, const std::vector<std::string>& references,
                      const ChrfOptions& options) {
  options.check();
  if (references.empty()) fail("[chrf] a hypothesis needs at least one reference");
  const auto answer = all_ngrams(hypothesis, options);
  ChrfCounts best;
  double best_score = -1;
  for (const std::string& reference : references) {
    const auto right = all_ngrams(reference, options);
    ChrfCounts counts;
    counts.orders.reserve(answer.size());
    for (size_t n = 0; n < answer.size(); ++n)
      // Orders longer than the reference do not count against the hypothesis.
      counts.orders.push_back({right[n].empty() ? 0 : total(answer[n]), total(right[n]),
                               internal::count_matches(answer[n], right[n])});
    const double score = chrf(counts, options);
    if (score <= best_score) continue;
    best_score = score;
    best = std::move(counts);
  }
  return best;
}

double chrf(const ChrfCounts& counts, const ChrfOptions& options) {
  double precision = 0, recall = 0;
  int64_t effective = 0;
  for (const auto& [hypothesis, reference, matches] : counts.orders) {
    if (hypothesis == 0 || reference == 0) continue;
    precision += static_cast<double>(matches) / static_cast<double>(hypothesis);
    recall += static_cast<double>(matches) / static_cast<double>(reference);
    ++effective;
  }
  if (precision + recall == 0) return 0;
  precision /= static_cast<double>(effective);
  recall /= static_cast<double>(effective);
  const auto factor = static_cast<double>(options.beta * options.beta);
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

std::string chrf_name(const ChrfOptions& options) {
  return fmt::format("chrF{}{}", options.beta,
                     std::string(static_cast<size_t>(options.word_order), '+'));
}

std::string chrf_signature(const ChrfOptions& options, int64_t references) {
  return fmt::format("{}|case:{}|eff:yes|nc:{}|nw:{}|space:{}|version:attend",
                     internal::references_signature(references), options.lowercase ? "lc" : "mixed",
                     options.character_order, options.word_order,
                     options.white_space ? "yes" : "no");
}

}  // namespace attend
