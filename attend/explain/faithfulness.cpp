#include "attend/explain/faithfulness.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>

#include "attend/base/error.h"
#include "attend/nn/worker_threads.h"
#include "attend/pictures/interval_panels.h"

namespace attend {
namespace {

constexpr int64_t bootstrap_samples = 1000;

std::vector<Example> spaced_examples(const std::vector<Example>& all, int64_t maximum) {
  if (maximum == 0) return all;
  std::vector<Example> chosen;
  for (const int64_t i : evenly_spaced(std::ssize(all), maximum))
    chosen.push_back(all[static_cast<size_t>(i)]);
  return chosen;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Returns the 2.5th and the 97.5th percentile of the means of samples drawn with replacement.
std::pair<double, double> bootstrap_interval(const std::vector<double>& values) {
  const auto count = static_cast<int64_t>(values.size());
  const auto draws = at::make_generator<at::CPUGeneratorImpl>(1);
  const at::Tensor which = at::randint(count, {bootstrap_samples, count}, draws, at::kLong);
  const at::Tensor means = std::get<0>(at::tensor(values, at::kDouble)
                                           .index_select(0, which.flatten())
                                           .view({bootstrap_samples, count})
                                           .mean(1)
                                           .sort());
  constexpr int64_t tail = bootstrap_samples / 40;
  return {means[tail].item<double>(), means[bootstrap_samples - 1 - tail].item<double>()};
}

// Figures of one method for one example, or why there are none.
struct OfMethod {
  std::vector<MeasuredFigure> figures = {};
  std::string obstacle = {};
};

struct OfExample {
  std::vector<OfMethod> methods = {};  // empty: the example could not be explained
  std::string obstacle = {};
};

std::vector<OfMethod> measure_one(const Explanation& explanation,
                                  const std::vector<const MethodRow*>& methods,
                                  const std::vector<const FigureRow*>& figures,
                                  const WeightTestOptions& options) {
  EvidenceTester tester(explanation, options);
  std::vector<OfMethod> all;
  for (const MethodRow* method : methods) {
    OfMethod one{.obstacle = refusal_reason(*method, explanation.subject(), explanation.trace())};
    if (one.obstacle.empty()) {
      try {
        const at::Tensor scores = method_scores(*method, explanation, tester.choice());
        one.figures = tester.measure(*method, scores, figures);
      } catch (const Error& error) {
        one.obstacle = error.what();
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

FaithfulnessFigure mean_over(const std::vector<OfExample>& measured, size_t method,
                             const FigureRow& row) {
  std::vector<double> values, others;
  FaithfulnessFigure result{.figure = &row};
  for (const OfExample& one : measured) {
    if (one.methods.empty()) continue;
    for (const MeasuredFigure& figure : one.methods[method].figures) {
      if (figure.row != &row) continue;
      if (figure.figure.missing != nullptr) {
        if (result.missing.empty()) result.missing = figure.figure.missing;
        continue;
      }
      values.push_back(figure.figure.value);
      others.push_back(figure.figure.other);
    }
  }
  if (!values.empty()) {
    result.mean = mean_of(values);
    result.other = mean_of(others);
    if (const char* missing = why_missing(row, {result.mean, result.other})) {
      result.missing = missing;
      values.clear();
    }
  }
  result.examples = std::ssize(values);
  if (values.empty()) {
    result.mean = result.low = result.high = result.other = std::nan("");
    result.difference_low = result.difference_high = std::nan("");
    result.passed = true;
    return result;
  }
  std::tie(result.low, result.high) = bootstrap_interval(values);
  result.passed = row.passes({result.low}) && row.passes({result.high});
  if (!row.compares) return result;
  std::transform(values.begin(), values.end(), others.begin(), values.begin(), std::minus<>());
  std::tie(result.difference_low, result.difference_high) = bootstrap_interval(values);
  result.passed = row.passes({result.difference_low}) && row.passes({result.difference_high});
  return result;
}

// Counts an example as left out for this reason.
void leave_out(std::vector<LeftOut>& all, const std::string& what, const std::string& why,
               bool any_reason) {
  for (LeftOut& one : all) {
    if (one.what != what || (!any_reason && one.why != why)) continue;
    ++one.examples;
    return;
  }
  all.push_back({what, 1, why});
}

Faithfulness summary_of(const std::vector<OfExample>& measured,
                        const std::vector<const MethodRow*>& methods, bool asked) {
  Faithfulness result;
  for (const OfExample& one : measured) {
    if (one.methods.empty()) leave_out(result.left_out, "", one.obstacle, /*any_reason=*/false);
    result.examples += one.methods.empty() ? 0 : 1;
  }
  if (result.examples == 0)
    fail("none of the {} examples can be explained; the first: {}", measured.size(),
         measured[0].obstacle);
  for (size_t i = 0; i < methods.size(); ++i) {
    for (const OfExample& one : measured)
      if (!one.methods.empty() && !one.methods[i].obstacle.empty())
        leave_out(result.left_out, methods[i]->name, one.methods[i].obstacle, /*any_reason=*/true);
    const LeftOut* last = result.left_out.empty() ? nullptr : &result.left_out.back();
    if (last != nullptr && last->what == methods[i]->name && last->examples == result.examples) {
      if (asked) fail("method {}: {}", last->what, last->why);
      continue;
    }
    for (const FigureRow& row : figure_table()) {
      FaithfulnessFigure figure = mean_over(measured, i, row);
      figure.method = methods[i];
      if (figure.examples > 0 || !figure.missing.empty()) result.figures.push_back(figure);
    }
  }
  return result;
}

}  // namespace

Faithfulness measure_faithfulness(const Model& model, const std::vector<Example>& examples,
                                  const FaithfulnessOptions& options,
                                  const std::function<void(int64_t done, int64_t total)>& report) {
  const std::vector<Example> chosen = spaced_examples(examples, options.examples);
  if (chosen.empty()) fail("no examples were given to explain");
  if (const AnswerKind& kind = model.answer_kind(); !kind.has_probabilities())
    fail("evidence needs probabilities, and this model answers {}s; leave evidence out",
         kind.name());
  std::vector<const MethodRow*> methods;
  for (const MethodRow& row : method_table())
    if (options.methods.empty() ||
        std::find(options.methods.begin(), options.methods.end(), &row) != options.methods.end())
      methods.push_back(&row);
  std::vector<OfExample> measured(chosen.size());
  std::mutex mutex;
  int64_t done = 0;
  const auto cores = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  WorkerThreads threads(options.threads > 0 ? options.threads : cores);
  threads.run(std::ssize(chosen), [&](int64_t job) {
    const Example& example = chosen[static_cast<size_t>(job)];
    OfExample& result = measured[static_cast<size_t>(job)];
    WeightTestOptions weights = options.weights;
    weights.seed += static_cast<uint64_t>(job);
    try {
      const Explanation explanation =
          answered_subject(model, example.source, {}, options.forced ? example.targets[0] : "");
      result.methods = measure_one(explanation, methods, options.figures, weights);
    } catch (const SourceError& error) {
      result.obstacle = error.reason();
    } catch (const Error& error) {
      result.obstacle = error.what();
    }
    const std::lock_guard lock(mutex);
    if (report) report(++done, std::ssize(chosen));
  });
  return summary_of(measured, methods, !options.methods.empty());
}

std::string left_out_text(const LeftOut& one, const Faithfulness& measured) {
  if (one.what.empty())
    return fmt::format("{} {}: {}", one.examples, one.examples == 1 ? "example" : "examples",
                       one.why);
  if (one.examples == measured.examples) return fmt::format("{}: {}", one.what, one.why);
  return fmt::format("{}, {} of {} examples: {}", one.what, one.examples, measured.examples,
                     one.why);
}

std::string faithfulness_svg(const Faithfulness& measured, const std::string& title) {
  std::vector<IntervalPanel> panels;
  for (const FigureRow& row : figure_table()) {
    IntervalPanel panel{row.name, row.bar, {}};
    for (const FaithfulnessFigure& one : measured.figures)
      if (one.figure == &row && one.examples > 0)
        panel.lines.push_back({one.method->name, one.mean, one.low, one.high,
                               row.compares ? std::optional(one.other) : std::nullopt, one.passed});
    if (!panel.lines.empty()) panels.push_back(std::move(panel));
  }
  return interval_panels_svg(
      fmt::format("{}: mean of {} answers, 95 % intervals; pale: missed; tick: compared value",
                  title, measured.examples),
      panels);
}

}  // namespace attend
