// Trains a model on a file of pairs, source TAB target, as `attend train` does, and answers with
// it. Ctrl-C saves everything; the same command then continues the training.
//
//     ./dev example train pairs.tsv model
#include <atomic>
#include <csignal>
#include <iostream>

#include "attend/base/memory.h"
#include "attend/inference/model.h"
#include "attend/runs/training.h"

namespace {

std::atomic<bool> stop = false;

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) throw attend::Error("usage: train PAIRS.tsv OUT");
  attend::keep_memory();  // makes training about a tenth faster
  std::signal(SIGINT, [](int) { stop = true; });
  attend::TrainOptions options;
  options.data = arguments[1];
  options.out = arguments[2];
  options.resume = true;
  options.assignments = {"train.epochs=10"};
  attend::TrainWatch watch;
  watch.stop = &stop;
  watch.say = [](const std::string& line) { std::cerr << line << '\n'; };
  watch.remark = watch.say;
  watch.progress = [](const attend::TrainProgress& now, const attend::Metric& metric) {
    if (now.validation)
      std::cerr << "step " << now.step << " of " << now.steps << ": loss " << now.validation->loss
                << ", " << metric.title << ' ' << metric.shown(now.validation->metric) << '\n';
  };
  const attend::Trained trained = attend::train_model(options, watch);
  if (trained.outcome.interrupted) return 130;
  const attend::Model model(options.out);
  std::cerr << "trained; type a source a line\n";
  for (std::string line; std::getline(std::cin, line);)
    std::cout << model.answer({line}, {.beam = 5})[0].candidates.at(0).text << '\n';
} catch (const attend::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
