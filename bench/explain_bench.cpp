// What evidence for one answer costs, on one thread: a word of eight letters and six sounds, about
// the mean of a pronouncing dictionary, by an untrained recurrent decoder as recipes/demo.toml has
// it.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attend/base/settings.h"
#include "attend/explain/evidence.h"
#include "attend/models/new_pair_model.h"
#include "bench/measure.h"

namespace attend::bench {
namespace {

// Two cores then take 60 s for 300 such words, all methods and figures together.
constexpr double most_all_methods = 0.4;
constexpr double most_card = 0.3;

PairModel demo_model(const std::vector<Example>& examples) {
  ModelConfig config;
  for (const char* setting :
       {"model.embedding=64", "model.hidden=128", "model.attention_depth=128"})
    assign(config.settings(), setting);
  TextConfig text;
  text.target_units = "space";
  PairModel model = make_pair_model(text, config, examples);
  model.network->eval();
  for (const at::Tensor& weight : model.network->parameters()) weight.requires_grad_(false);
  return model;
}

// As many tokens as a pronouncing dictionary of English has.
std::vector<Example> examples() {
  std::string letters = "abcdefghijklmnopqrstuvwxyz'-.", sounds;
  for (int i = 0; i < 39; ++i) sounds += fmt::format("{}S{}", i == 0 ? "" : " ", i);
  return {{"economic", {"S1 S2 S3 S4 S5 S6"}}, {letters, {sounds}}};
}

void test_method(const Subject& subject, EvidenceTester& tester, const MethodRow& method) {
  if (!why_not(method, subject, tester.trace()).empty()) return;
  tester.measure(method, method_scores(method, subject, tester.trace(), tester.choice()));
}

void report(const std::string& metric, double value, double bar, bool as_json) {
  const bool met = value <= bar;
  if (as_json)
    fmt::print(
        "{}\n",
        nlohmann::ordered_json{
            {"case", "one word"}, {"metric", metric}, {"value", value}, {"bar", bar}, {"met", met}}
            .dump());
  else
    fmt::print("{:<44} {:8.3f} s  {}: at most {} s\n", metric, value, met ? "met" : "MISSED", bar);
}

}  // namespace
}  // namespace attend::bench

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  using namespace attend;
  using namespace attend::bench;
  bool as_json = false, quick = false;
  CLI::App app("What evidence for one answer costs");
  app.add_flag("--json", as_json, "print {case, metric, value, bar, met} of each figure");
  app.add_flag("--quick", quick, "three turns alone");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  const std::vector<Example> all = examples();
  const PairModel model = demo_model(all);
  const Subject subject = make_subject(model, model.encode({all[0]})[0]);
  const Rounds rounds =
      take_turns({seconds_of(1,
                             [&] {
                               EvidenceTester tester(subject);
                               test_method(subject, tester, find_method("attention"));
                             }),
                  seconds_of(1,
                             [&] {
                               EvidenceTester tester(subject, {.networks = 1});
                               for (const MethodRow& row : method_table())
                                 test_method(subject, tester, row);
                             })},
                 quick ? 0.1 : 2);
  report("card of the weights, processor time", rounds.median(0), most_card, as_json);
  report("all methods of a data set, processor time", rounds.median(1), most_all_methods, as_json);
}
