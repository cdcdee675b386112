#include "attend/train/checkpoint.h"

#include <charconv>
#include <sstream>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/memory.h"
#include "attend/files/safetensors.h"

namespace attend {
namespace {

// Calls f(name, field) for each field; shared by reading and writing.
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
  f("best_loss", checkpoint.best_loss);
  f("validation_fingerprint", checkpoint.validation_fingerprint);
}

template <class N>
void parse(const std::string& text, N& number, const std::string& path, const char* name) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    fail("{}: field {} is not a number", path, name);
}

std::string counted(int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

void check_order(const char* key, int64_t stored, int64_t asked, const std::string& path) {
  if (stored >= 0 && stored != asked)
    fail(
        "train.{0} = {1}, and {2} was begun with {3}, which determines the order of the data; give "
        "train.{0} = {3}, or train into a new folder",
        key, asked, path, stored);
}

bool has_other_metric(const Checkpoint& stored, const Checkpoint& training) {
  return !stored.metric.empty() && stored.metric != training.metric;
}

bool has_other_validation(const Checkpoint& stored, const Checkpoint& training) {
  return stored.validation_fingerprint != 0 &&
         stored.validation_fingerprint != training.validation_fingerprint;
}

// A run is written as "pairs tokens batches".
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
    if (!(numbers >> run.size.tokens >> run.batches) || run.size.pairs < 0 || run.size.tokens < 0 ||
        run.size == BatchSize{} || run.batches < 1)
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
  return parse_checkpoint(read_file(path, memory_limit()), path);
}

Checkpoint parse_checkpoint(const std::string& bytes, const std::string& path) {
  const TensorFile file = parse_safetensors(bytes, path);
  Checkpoint checkpoint;
  for_each_tensor(checkpoint, [&](const char* name, at::Tensor& tensor) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end() || found->second.dim() != 1 ||
        found->second.scalar_type() != at::kFloat)
      fail("{}: no tensor {} with one axis of float; this is not a checkpoint", path, name);
    tensor = found->second;
  });
  for_each_number(checkpoint, [&](const char* name, auto& number) {
    const auto found = file.metadata.find(name);
    if (found == file.metadata.end()) fail("{}: no field {}; this is not a checkpoint", path, name);
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
  // Older checkpoints only have the number of batches.
  if (BatchRun run; file.metadata.contains("batches")) {
    parse(text_of("batches"), run.batches, path, "batches");
    if (run.batches > 0) checkpoint.handed_out = {run};
  }
  return checkpoint;
}

bool same_metric(const Checkpoint& stored, const Checkpoint& training) {
  return !has_other_metric(stored, training) && !has_other_validation(stored, training);
}

void check_resumable(const Checkpoint& stored, const Checkpoint& training,
                     const std::string& path) {
  // Checked first, because a streamed file and its pairs in memory have different fingerprints.
  check_order("shuffle_buffer", stored.shuffle_buffer, training.shuffle_buffer, path);
  if (stored.data_fingerprint != training.data_fingerprint)
    fail("{}: was trained on other data; give the same --data, or train into a new folder", path);
  check_order("seed", stored.seed, training.seed, path);
}

std::vector<std::string> resume_warnings(const Checkpoint& stored, const Checkpoint& training,
                                         const std::string& path) {
  std::vector<std::string> lines;
  const bool known = stored.processes > 0 && stored.replicas > 0;
  if (known && (stored.processes != training.processes || stored.replicas != training.replicas))
    lines.push_back(fmt::format(
        "{} was taken by {} of {}, and {} of {} continue: with the same examples, but no longer to "
        "the same bits",
        path, counted(stored.processes, "process", "processes"),
        counted(stored.replicas, "replica", "replicas"),
        counted(training.processes, "process", "processes"),
        counted(training.replicas, "replica", "replicas")));
  const char* anew =
      "the search for the best weights starts again, and the next validation replaces the earlier "
      "best";
  if (has_other_metric(stored, training))
    lines.push_back(
        fmt::format("train.metric is {}, and was {}: {}", training.metric, stored.metric, anew));
  if (has_other_validation(stored, training))
    lines.push_back(fmt::format("{} was validated on other examples: {}", path, anew));
  return lines;
}

}  // namespace attend
