#include "attend/train/checkpoint.h"

#include <charconv>
#include <sstream>

#include "attend/base/error.h"
#include "attend/data/safetensors.h"

namespace attend {
namespace {

// Calls f(name, field) for each field, so that reading and writing cannot drift apart.
template <class C, class F>
void for_each_tensor(C& checkpoint, F f) {
  f("weights", checkpoint.weights);
  f("average", checkpoint.average);
  f("first_moment", checkpoint.first_moment);
  f("second_moment", checkpoint.second_moment);
}

template <class C, class F>
void for_each_number(C& checkpoint, F f) {
  f("step", checkpoint.step);
  f("updates", checkpoint.updates);
  f("epoch", checkpoint.epoch);
  f("loss_sum", checkpoint.loss_sum);
  f("loss_symbols", checkpoint.loss_tokens);
  f("best_metric", checkpoint.best_metric);
  f("best_step", checkpoint.best_step);
  f("stale_validations", checkpoint.stale_validations);
  f("rate_factor", checkpoint.rate_factor);
  f("rollbacks", checkpoint.rollbacks);
  f("seconds", checkpoint.seconds);
  f("data_fingerprint", checkpoint.data_fingerprint);
}

// Fields that older checkpoints lack.
template <class C, class F>
void for_each_later_number(C& checkpoint, F f) {
  f("seed", checkpoint.seed);
  f("shuffle_buffer", checkpoint.shuffle_buffer);
  f("processes", checkpoint.processes);
  f("replicas", checkpoint.replicas);
}

template <class N>
void parse(const std::string& text, N& number, const std::string& path, const char* name) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    fail("{}: field {} is no number", path, name);
}

// A run is "pairs tokens batches".
std::string runs_text(const std::vector<BatchRun>& runs) {
  std::string text;
  for (const BatchRun& run : runs)
    text += fmt::format("{}{} {} {}", text.empty() ? "" : " ", run.size.pairs, run.size.tokens,
                        run.batches);
  return text;
}

std::vector<BatchRun> parse_runs(const std::string& text, const std::string& path) {
  std::vector<BatchRun> runs;
  std::istringstream numbers(text);
  for (BatchRun run; numbers >> run.size.pairs;) {
    if (!(numbers >> run.size.tokens >> run.batches) || run.size.pairs < 1 || run.size.tokens < 0 ||
        run.batches < 1)
      break;
    runs.push_back(run);
  }
  if (!numbers.eof() || runs_text(runs) != text)
    fail("{}: field handed_out holds no runs of batches", path);
  return runs;
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  TensorFile file;
  for_each_tensor(checkpoint, [&](const char* name, const at::Tensor& tensor) {
    file.tensors.emplace(name, tensor);
  });
  // fmt writes the shortest decimal that reads back as the same double.
  const auto put = [&](const char* name, const auto& number) {
    file.metadata.emplace(name, fmt::format("{}", number));
  };
  for_each_number(checkpoint, put);
  for_each_later_number(checkpoint, put);
  file.metadata.emplace("handed_out", runs_text(checkpoint.handed_out));
  file.metadata.emplace("metric", checkpoint.metric);
  write_safetensors(path, file);
}

Checkpoint read_checkpoint(const std::string& path) {
  const TensorFile file = read_safetensors(path);
  Checkpoint checkpoint;
  for_each_tensor(checkpoint, [&](const char* name, at::Tensor& tensor) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end() || found->second.dim() != 1 ||
        found->second.scalar_type() != at::kFloat)
      fail("{}: no tensor {} of one axis of float; this is no checkpoint", path, name);
    tensor = found->second;
  });
  for_each_number(checkpoint, [&](const char* name, auto& number) {
    const auto found = file.metadata.find(name);
    if (found == file.metadata.end()) fail("{}: no field {}; this is no checkpoint", path, name);
    parse(found->second, number, path, name);
  });
  const auto text_of = [&](const char* name) {
    const auto found = file.metadata.find(name);
    return found == file.metadata.end() ? "" : found->second;
  };
  for_each_later_number(checkpoint, [&](const char* name, auto& number) {
    if (file.metadata.contains(name)) parse(text_of(name), number, path, name);
  });
  checkpoint.metric = text_of("metric");
  checkpoint.handed_out = parse_runs(text_of("handed_out"), path);
  // Older checkpoints tell only the number of batches.
  if (BatchRun run; file.metadata.contains("batches")) {
    parse(text_of("batches"), run.batches, path, "batches");
    if (run.batches > 0) checkpoint.handed_out = {run};
  }
  return checkpoint;
}

}  // namespace attend
