#include "attend/explain/faithfulness.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <thread>

#include "attend/base/error.h"
#include "attend/nn/worker_threads.h"

namespace attend {
namespace {

constexpr int bootstrap_samples = 1000;

std::vector<Example> spaced_examples(const std::vector<Example>& all, int64_t most) {
  if (most == 0) return all;
  std::vector<Example> chosen;
  for (const int64_t i : evenly_spaced(std::ssize(all), most))
    chosen.push_back(all[static_cast<size_t>(i)]);
  return chosen;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The 2.5th and the 97.5th percentile of the means of samples drawn with replacement.
std::pair<double, double> bootstrap_interval(const std::vector<double>& values) {
  std::mt19937_64 draws(1);
  std::uniform_int_distribution<size_t> which(0, values.size() - 1);
  std::vector<double> means;
  for (int sample = 0; sample < bootstrap_samples; ++sample) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[which(draws)];
    means.push_back(sum / static_cast<double>(values.size()));
  }
  std::sort(means.begin(), means.end());
  return {means[bootstrap_samples / 40], means[bootstrap_samples - 1 - bootstrap_samples / 40]};
}

// The methods that say something about such an answer.
std::vector<const MethodRow*> applying(const Subject& subject, const FaithfulnessOptions& options,
                                       std::vector<std::string>& left_out) {
  const NetworkTrace trace = trace_network(subject.network(), subject.batch);
  std::vector<const MethodRow*> methods;
  for (const MethodRow& row : method_table()) {
    const bool asked =
        std::find(options.methods.begin(), options.methods.end(), &row) != options.methods.end();
    if (!options.methods.empty() && !asked) continue;
    const std::string obstacle = why_not(row, subject, trace);
    if (obstacle.empty()) {
      methods.push_back(&row);
    } else if (asked) {
      fail("method {}: {}", row.name, obstacle);
    } else {
      left_out.push_back(fmt::format("{}: {}", row.name, obstacle));
    }
  }
  return methods;
}

using Measured = std::vector<std::vector<MeasuredFigure>>;  // by method

Measured measure_one(const Subject& subject, const std::vector<const MethodRow*>& methods,
                     const FaithfulnessOptions& options) {
  EvidenceTester tester(subject, options.weights);
  Measured all;
  for (const MethodRow* method : methods) {
    try {
      all.push_back(tester.measure(*method, method_scores(*method, subject), options.figures));
    } catch (const Error&) {
      all.emplace_back();  // such as flow through too many tokens: the others still count
    }
  }
  return all;
}

std::vector<FaithfulnessFigure> means_over(const std::vector<Measured>& measured,
                                           const std::vector<const MethodRow*>& methods) {
  std::vector<FaithfulnessFigure> figures;
  for (size_t method = 0; method < methods.size(); ++method) {
    for (const FigureRow& row : figure_table()) {
      std::vector<double> values, others;
      for (const Measured& one : measured) {
        if (one.empty()) continue;
        for (const MeasuredFigure& figure : one[method]) {
          if (figure.row != &row) continue;
          values.push_back(figure.figure.value);
          others.push_back(figure.figure.other);
        }
      }
      if (values.empty()) continue;
      const auto [low, high] = bootstrap_interval(values);
      const double mean = mean_of(values), other = mean_of(others);
      figures.push_back({methods[method], &row, mean, low, high, other, row.passes({mean, other})});
    }
  }
  return figures;
}

}  // namespace

Faithfulness measure_faithfulness(const Model& model, const std::vector<Example>& examples,
                                  const FaithfulnessOptions& options,
                                  const std::function<void(int64_t done, int64_t total)>& report) {
  const std::vector<Example> chosen = spaced_examples(examples, options.examples);
  if (chosen.empty()) fail("there are no examples to explain");
  const auto subject_of = [&](const Example& example) {
    return answered_subject(model, example.source, {}, options.forced ? example.targets[0] : "");
  };
  Faithfulness result;
  const std::vector<const MethodRow*> methods =
      applying(subject_of(chosen[0]), options, result.left_out);
  std::vector<Measured> measured(chosen.size());
  std::mutex mutex;
  int64_t done = 0;
  const auto cores = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  WorkerThreads threads(options.threads > 0 ? options.threads : cores);
  threads.run(std::ssize(chosen), [&](int64_t job) {
    try {
      const Subject subject = subject_of(chosen[static_cast<size_t>(job)]);
      measured[static_cast<size_t>(job)] = measure_one(subject, methods, options);
    } catch (const Error&) {
      // An empty source, or an answer of EOS alone, has nothing to explain.
    }
    const std::lock_guard lock(mutex);
    if (report) report(++done, std::ssize(chosen));
  });
  result.examples = std::count_if(measured.begin(), measured.end(),
                                  [](const Measured& one) { return !one.empty(); });
  if (result.examples == 0) fail("none of the {} examples has an answer to explain", chosen.size());
  result.figures = means_over(measured, methods);
  return result;
}

std::string faithfulness_json(const Faithfulness& measured) {
  nlohmann::ordered_json document = {{"examples", measured.examples}};
  for (const FaithfulnessFigure& figure : measured.figures)
    document["methods"][figure.method->name][figure.figure->name] = {
        {"mean", figure.mean},           {"low", figure.low},         {"high", figure.high},
        {"compared_with", figure.other}, {"bar", figure.figure->bar}, {"passed", figure.passed}};
  document["left_out"] = measured.left_out;
  return document.dump();
}

}  // namespace attend
