#include <utf8proc.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attend/base/error.h"
#include "attend/metrics/metric_rows-inl.h"
#include "attend/metrics/ngrams-inl.h"

namespace attend {
namespace {

using Words = std::vector<std::string>;

bool is_mark(const std::string& character) {
  constexpr std::string_view marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  return character.size() == 1 && marks.find(character[0]) != std::string_view::npos;
}

bool is_letter_or_digit(const std::string& character) {
  const char32_t code = internal::code_points_of(character).at(0);
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO &&
         category != UTF8PROC_CATEGORY_MN && category != UTF8PROC_CATEGORY_MC &&
         category != UTF8PROC_CATEGORY_ME;
}

// Words of an answer in lower case, without ASCII punctuation and articles, as SQuAD compares them.
Words squad_words(std::string_view answer) {
  std::string text, word;
  const auto end_word = [&] {
    const bool is_article = word == "a" || word == "an" || word == "the";
    text += is_article ? " " : word;
    word.clear();
  };
  for (const std::string& character : internal::characters_of(internal::lower_case(answer))) {
    if (is_mark(character)) continue;
    if (is_letter_or_digit(character)) {
      word += character;
      continue;
    }
    end_word();
    text += character;
  }
  end_word();
  return internal::words_of(text);
}

double exact(const Words& answer, const Words& reference) { return answer == reference ? 1 : 0; }

// F1 of the words, in any order.
double overlap(const Words& answer, const Words& reference) {
  if (answer.empty() || reference.empty()) return exact(answer, reference);
  std::map<std::string, int64_t> left;
  for (const std::string& word : reference) ++left[word];
  double common = 0;
  for (const std::string& word : answer)
    if (const auto found = left.find(word); found != left.end() && found->second-- > 0) ++common;
  return 2 * common / static_cast<double>(answer.size() + reference.size());
}

Metric row(const char* name, const char* title, double (*score)(const Words&, const Words&)) {
  const auto count = [score](const ScoredAnswer& scored, const MetricOptions&) -> MetricCounts {
    if (scored.references.empty()) fail("an answer has no reference; give at least one");
    const Words answer = squad_words(scored.text);
    double best = 0;
    for (const std::string& reference : scored.references)
      best = std::max(best, score(answer, squad_words(reference)));
    return {{"score", best}, {"answers", 1}};
  };
  return {.name = name,
          .key = name,
          .title = title,
          .higher_is_better = true,
          .is_share = true,
          .measured = MeasuredFor::spans,
          .by_length = ByLength::each_length,
          .count = count,
          .figure = [](const MetricCounts& counts, const MetricOptions&) {
            return internal::number_of(counts, "score") /
                   std::max(1.0, internal::number_of(counts, "answers"));
          }};
}

}  // namespace

// Rajpurkar et al. 2016, 6.1; an empty answer is right if no answer is (Rajpurkar et al. 2018).
std::deque<Metric> internal::squad_rows() {
  return {row("squad_exact_match", "exact match", exact), row("squad_f1", "F1 of words", overlap)};
}

}  // namespace attend
