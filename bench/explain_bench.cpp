// Cost of explanations. By default: evidence for one answer on one thread, by an untrained
// recurrent decoder as in recipes/demo.toml. The answer is a word of eight letters and six sounds,
// about the mean of a pronouncing dictionary. With --long: each method on 512 tokens of an
// untrained classifier of BERT-base's size, on all cores, and the page without a named method.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attend/base/settings.h"
#include "attend/explain/answer_page.h"
#include "attend/explain/evidence.h"
#include "attend/explain/layer_maps.h"
#include "attend/models/new_pair_model.h"
#include "bench/measure.h"

namespace attend::bench {
namespace {

// With this bar, two cores take 60 s for 300 such words with all methods and figures.
constexpr double max_all_methods = 0.4;
constexpr double max_card = 0.3;
constexpr double max_method = 60, max_gigabytes = 1;
constexpr const char* whole_page = "page";  // in place of a method's name

PairModel new_model(const std::string& type, const std::vector<std::string>& settings,
                    const TextConfig& text, const std::vector<Example>& examples) {
  ModelConfig config;
  config.type = type;
  for (const std::string& setting : settings) assign(config.settings(), setting);
  PairModel model = make_pair_model(text, config, examples);
  model.network->eval();
  for (const at::Tensor& weight : model.network->parameters()) weight.requires_grad_(false);
  return model;
}

PairModel demo_model(const std::vector<Example>& examples) {
  TextConfig text;
  text.target_units = "space";
  return new_model("seq2seq",
                   {"model.embedding=64", "model.hidden=128", "model.attention_depth=128"}, text,
                   examples);
}

// Has the vocabulary sizes of an English pronouncing dictionary.
std::vector<Example> examples() {
  std::string letters = "abcdefghijklmnopqrstuvwxyz'-.", sounds;
  for (int i = 0; i < 39; ++i) sounds += fmt::format("{}S{}", i == 0 ? "" : " ", i);
  return {{"economic", {"S1 S2 S3 S4 S5 S6"}}, {letters, {sounds}}};
}

// 512 words, and enough others for the vocabulary size of an English BERT.
std::vector<Example> long_examples() {
  std::string words, others;
  for (int i = 0; i < 512; ++i) words += fmt::format("{}w{}", i == 0 ? "" : " ", i);
  for (int i = 512; i < 30'000; ++i) others += fmt::format(" w{}", i);
  return {{words, {"good"}}, {others, {"bad"}}};
}

PairModel long_model(const std::vector<Example>& examples) {
  at::manual_seed(1);
  TextConfig text;
  text.source_units = "space";
  return new_model(
      "classifier",
      {"model.depth=768", "model.heads=12", "model.layers=12", "model.feed_forward=3072",
       "model.activation=gelu", "model.normalise_first=false", "model.pooling=first",
       "model.hidden=768", "model.hidden_activation=tanh"},
      text, examples);
}

void test_method(const Explanation& explanation, EvidenceTester& tester, const MethodRow& method) {
  if (!refusal_reason(method, explanation.subject(), explanation.trace()).empty()) return;
  tester.measure(method, method_scores(method, explanation, tester.choice()));
}

struct Bar {
  const char* workload;
  const char* unit;  // unit of the figures
  double maximum;
};

void report(const std::string& metric, double value, const Bar& wanted, bool as_json) {
  const bool met = value <= wanted.maximum;
  if (as_json)
    fmt::print("{}\n", nlohmann::ordered_json{{"case", wanted.workload},
                                              {"metric", metric},
                                              {"value", value},
                                              {"bar", wanted.maximum},
                                              {"met", met}}
                           .dump());
  else
    fmt::print("{:<44} {:8.3f} {}  {}: at most {} {}\n", metric, value, wanted.unit,
               met ? "met" : "MISSED", wanted.maximum, wanted.unit);
}

double peak_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-9;
}

// Reports time and peak memory for 512 tokens, including the model's memory.
void report_long(const std::string& name, std::chrono::steady_clock::time_point start,
                 bool as_json) {
  constexpr const char* workload = "512 tokens of 12 layers";
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report(name + ", time", seconds.count(), {workload, "s ", max_method}, as_json);
  report(name + ", memory", peak_gigabytes(), {workload, "GB", max_gigabytes}, as_json);
}

// Writes the page into memory.
void measure_page(const Subject& subject, bool as_json) {
  const auto start = std::chrono::steady_clock::now();
  std::ostringstream out;
  const Explanation explanation = subject;
  const ExplanationPage page = answer_page(explanation, test_methods(explanation, nullptr, {}));
  write_page(out, page);
  report_long(fmt::format("{} ({} methods)", whole_page, page.methods.size()), start, as_json);
}

void measure_long(const std::string& name, bool as_json) {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // as `attend explain` does
  const at::NoGradGuard not_recorded;
  const std::vector<Example> examples = long_examples();
  const PairModel model = long_model(examples);
  const Subject subject = make_subject(model, model.encode({examples[0]})[0]);
  if (name == whole_page) return measure_page(subject, as_json);
  const MethodRow& method = find_method(name);
  const double before = peak_gigabytes();
  const std::string obstacle =
      refusal_reason(method, subject, trace_network(subject.network(), subject.batch));
  if (!obstacle.empty()) {
    if (!as_json) fmt::print("{:<44} {}\n", method.name, obstacle);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  method_scores(method, subject);
  report_long(name, start, as_json);
  if (!as_json) fmt::print("{:<44} {:8.3f} GB\n", "  of it before the method began", before);
}

// Measures each in a separate process, for its peak of memory. Returns whether all succeeded.
bool measure_all_long(char** argv, bool as_json) {
  bool well = true;
  std::vector<std::string> names = {whole_page};
  for (const MethodRow& row : method_table()) names.emplace_back(row.name);
  for (const std::string& name : names) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      execl("/proc/self/exe", argv[0], "--method", name.c_str(), as_json ? "--json" : nullptr,
            nullptr);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    well = well && status == 0;
  }
  return well;
}

}  // namespace
}  // namespace attend::bench

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  using namespace attend;
  using namespace attend::bench;
  bool as_json = false, quick = false, is_long = false;
  std::string only;
  CLI::App app("The cost of evidence for one answer");
  app.add_flag("--json", as_json, "print {case, metric, value, bar, met} of each figure");
  app.add_flag("--quick", quick, "only three turns");
  app.add_flag("--long", is_long,
               "each method on 512 tokens of a model of BERT-base's size, and the page");
  app.add_option("--method", only, "only this method, or `page`, on the same model");
  CLI11_PARSE(app, argc, argv);
  if (is_long) return measure_all_long(argv, as_json) ? 0 : 1;
  if (!only.empty()) {
    measure_long(only, as_json);
    return 0;
  }
  at::set_num_threads(1);
  const std::vector<Example> all = examples();
  const PairModel model = demo_model(all);
  const Subject subject = make_subject(model, model.encode({all[0]})[0]);
  const Rounds rounds =
      take_turns({seconds_of(1,
                             [&] {
                               const Explanation explanation = subject;
                               EvidenceTester tester(explanation);
                               test_method(explanation, tester, find_method("attention"));
                             }),
                  seconds_of(1,
                             [&] {
                               const Explanation explanation = subject;
                               EvidenceTester tester(explanation, {.networks = 1});
                               for (const MethodRow& row : method_table())
                                 test_method(explanation, tester, row);
                             })},
                 quick ? 0.1 : 2);
  constexpr const char* workload = "one word";
  report("card of the weights, processor time", rounds.median(0), {workload, "s", max_card},
         as_json);
  report("all methods of a data set, processor time", rounds.median(1),
         {workload, "s", max_all_methods}, as_json);
}
