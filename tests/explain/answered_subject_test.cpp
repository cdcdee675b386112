#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "attend/explain/subject.h"
#include "attend/explain/trace.h"
#include "tests/explain/subjects.h"

namespace attend {
namespace answered_subject_test {

// The model has learned positions, which end at its context.
TEST(AnsweredSubject, OfALanguageModelIsWhatOnePassReads) {
  const test::SmallModel small(
      "lm", "lm", {"model.context=8", "model.depth=8", "model.heads=2", "model.feed_forward=10"});
  small.model.network->to(at::kFloat);
  const Model model(small.model, {.threads = 1});
  for (const int64_t tokens : {5, 6, 12}) {
    const SearchOptions search{.minimum_length = tokens, .maximum_length = tokens};
    const auto answer = model.answer({"a b"}, search).at(0).best().tokens;
    ASSERT_EQ(std::ssize(answer), tokens);
    const Subject subject = answered_subject(model, "a b", search);
    EXPECT_EQ(subject.is_part, tokens > 6);
    EXPECT_EQ(std::ssize(subject.target), std::min<int64_t>(tokens, 6));
    EXPECT_TRUE(std::equal(subject.target.begin(), subject.target.end(), answer.begin()));
    EXPECT_FALSE(trace_network(subject.network(), subject.batch).attentions.empty());
  }
}

}  // namespace answered_subject_test
}  // namespace attend
