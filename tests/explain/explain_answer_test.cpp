#include "attend/explain/explain_answer.h"

#include <gtest/gtest.h>

#include "attend/inference/model.h"
#include "tests/inference/untrained_model.h"
#include "tests/support/files.h"

namespace attend {
namespace explain_answer_test {

struct Asked {
  std::string name;
  ExplanationRequest request;
};

ExplanationRequest viewed(ExplanationView view) {
  ExplanationRequest request;
  request.show.view = view;
  return request;
}

ExplanationRequest by_method(const std::string& method, bool has_evidence) {
  ExplanationRequest request;
  request.show.method = method;
  request.show.evidence = has_evidence;
  return request;
}

// Requests that need more than one pass of the network.
std::vector<Asked> all_asked() {
  ExplanationRequest without;
  without.without = {"decoder.1.head.1"};
  ExplanationRequest page = by_method("", true);
  page.file = &file_of(value_of<ExplainFormat>("page", "format"));
  ExplanationRequest html = by_method("", false);
  html.file = &file_of(value_of<ExplainFormat>("html", "format"));
  return {{"without", without},
          {"effects", viewed(ExplanationView::effects)},
          {"lens", viewed(ExplanationView::lens)},
          {"heads", viewed(ExplanationView::heads)},
          {"evidence", by_method("attention", true)},
          {"occlusion", by_method("occlusion", false)},
          {"value_zeroing", by_method("value_zeroing", false)},
          {"page", page},
          {"html", html}};
}

// Stops the request from call number `stopped` of is_stopped on; 0: never. Returns the number of
// calls.
int64_t times_asked(const Model& model, ExplanationRequest request, int64_t stopped) {
  request.text = "cab";
  int64_t asked = 0;
  const auto is_stopped = [&] { return ++asked >= stopped && stopped > 0; };
  if (stopped == 0) {
    explain_answer(model, request, {.is_stopped = is_stopped});
  } else {
    EXPECT_EQ(test::error_of([&] { explain_answer(model, request, {.is_stopped = is_stopped}); }),
              "the explanation was cancelled");
  }
  return asked;
}

TEST(ExplainAnswer, EndsBeforeTheNextPassOnceNobodyWaits) {
  const Model model(test::untrained_model("transformer"), {.threads = 1});
  const int64_t least = times_asked(model, viewed(ExplanationView::alignment), 0);
  for (const Asked& one : all_asked()) {
    SCOPED_TRACE(one.name);
    const int64_t all = times_asked(model, one.request, 0);
    EXPECT_GT(all, least) << "passes are not asked about";
    for (const int64_t stopped : {int64_t{1}, all / 2, all - 1, all})
      EXPECT_LE(times_asked(model, one.request, stopped), stopped + 3);
  }
}

}  // namespace explain_answer_test
}  // namespace attend
