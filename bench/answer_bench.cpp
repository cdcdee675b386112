// Times how long a model folder takes to answer the lines of a file, or to embed them, once per
// line of standard input. tools/peers_decode.py and tools/peers_encoders.py alternate it with other
// libraries.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "attend/base/files.h"
#include "attend/base/memory.h"
#include "attend/decode/weight_type.h"
#include "attend/inference/model.h"
#include "bench/measure.h"

namespace attend {
namespace {

struct Clocks {
  double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  double processor = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;  // sum of all threads
};

using Lines = std::vector<std::string>;

// Calls ask(sources) with `batch` lines at a time, and returns the times, in total and per call.
template <class Ask>
nlohmann::json timed(const Lines& lines, size_t batch, Ask ask) {
  std::vector<double> seconds;
  const auto ask_timed = [&](const Lines& sources) {
    const Clocks begin;
    ask(sources);
    seconds.push_back(Clocks().wall - begin.wall);
  };
  const Clocks begin;
  for (size_t first = 0; first < lines.size(); first += batch) {
    const auto begin_of_batch = lines.begin() + static_cast<std::ptrdiff_t>(first);
    const size_t count = std::min(batch, lines.size() - first);
    ask_timed({begin_of_batch, begin_of_batch + static_cast<std::ptrdiff_t>(count)});
  }
  const Clocks end;
  return {{"wall", end.wall - begin.wall},
          {"processor", end.processor - begin.processor},
          {"seconds", seconds}};
}

// One object per turn: the times and the best answers.
nlohmann::json answer_turn(const Model& model, const Lines& lines, const SearchOptions& search,
                           size_t batch) {
  std::vector<Answer> answers;
  nlohmann::json found = timed(lines, batch, [&](const Lines& sources) {
    for (Answer& each : model.answer(sources, search)) answers.push_back(std::move(each));
  });
  for (const Answer& each : answers)
    found["answers"].push_back(
        {{"text", each.best().text}, {"log_probability", each.best().log_probability}});
  return found;
}

// One object per turn: the times and the vectors of the texts.
nlohmann::json embed_turn(const Model& model, const Lines& lines, size_t batch) {
  std::vector<Embedding> embeddings;
  nlohmann::json found = timed(lines, batch, [&](const Lines& sources) {
    for (Embedding& each : model.embed(sources)) embeddings.push_back(std::move(each));
  });
  for (const Embedding& each : embeddings) found["vectors"].push_back(each.whole);
  return found;
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  attend::bench::prepare_blas(argv);
  attend::keep_memory();  // as `attend predict` does
  using namespace attend;
  std::string folder, file;
  ModelOptions options{.threads = 1};
  SearchOptions search{.beam = 5};
  size_t batch = 0;
  bool embeds = false;
  CLI::App app("Answers the lines of a file, in turns");
  app.add_option("model", folder, "the folder")->required();
  app.add_option("lines", file, "the file, a source a line")->required();
  app.add_option("--threads", options.threads, "that compute");
  app.add_option_function<std::string>(
      "--weights",
      [&](const std::string& name) {
        options.weights = value_of<WeightType>(name, "type of weights");
      },
      "float32, bfloat16 or int8");
  app.add_option("--beam", search.beam, "hypotheses a source");
  app.add_option("--length", search.maximum_length, "tokens of every answer; 0: to its end");
  app.add_option("--batch", batch, "lines per call; 0: all");
  app.add_flag("--embed", embeds, "compute the vectors of the lines");
  CLI11_PARSE(app, argc, argv);
  search.minimum_length = search.maximum_length;
  const Model model(folder, options);
  std::vector<std::string> lines;
  std::istringstream text(read_file(file));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  if (batch == 0) batch = std::max<size_t>(1, lines.size());
  for (std::string turn; std::getline(std::cin, turn);)
    std::cout << (embeds ? embed_turn(model, lines, batch)
                         : answer_turn(model, lines, search, batch))
                     .dump()
              << std::endl;
}
