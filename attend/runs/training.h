#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/data/pairs.h"
#include "attend/metrics/metric.h"
#include "attend/models/model_config.h"
#include "attend/nn/device_placement.h"
#include "attend/train/train_progress.h"

namespace attend {

class Communicator;

// Handling of data tokens that the model of TrainOptions::init lacks: extend its vocabularies, or
// keep them and read these tokens as unknown.
enum class InitVocabulary { extend, keep };
inline EnumNames names_of(InitVocabulary) { return {"extend", "keep"}; }

// Options of `attend train`.
struct TrainOptions {
  std::string data, target, valid, valid_target, out, config, init;
  InitVocabulary init_vocabulary = InitVocabulary::extend;
  std::vector<std::string> assignments;
  std::string source_units, target_units;
  std::string source_column, target_column;  // columns of a table, see PairTable
  DevicePlacement placement;
  bool resume = false, strict = false;
  bool skip_bad = false;  // skips unreadable lines, images and sounds; otherwise they are Errors
  Communicator* world = nullptr;  // the processes that train together (connect); null: only this
                                  // process
};

// Called with status lines of a run, without line ends.
using Say = std::function<void(const std::string& line)>;

// Callbacks of a training; empty ones are not called.
struct TrainWatch {
  Say say = [](const std::string&) {};
  // Called with remarks on the data: unreadable, truncated or skipped parts.
  Tell remark = [](const std::string&) {};
  std::function<void(const TrainProgress&, const Metric&)> progress = {};
  // Called before the first file is written. Errors of the command and the data are thrown earlier.
  std::function<void()> begin = {};
  // If true, the training saves everything and ends with outcome.interrupted.
  const std::atomic<bool>* stop = nullptr;
};

struct Trained {
  TrainOutcome outcome;
  Metric metric;  // metric of outcome.best_metric
};

// The configuration as a TOML document; precedence: flag > environment > file > default. With
// options.resume and a model in options.out, the model's settings are the defaults. Error if
// settings do not fit.
std::string training_config(const TrainOptions& options);

// The model of this configuration.
ModelConfig training_model(const TrainOptions& options);

// Reads the pairs of a TSV file as a model with these options would in a test. Error if settings do
// not fit, and as read_pairs.
std::vector<Example> read_test(const TrainOptions& options, const std::string& path,
                               const Tell& tell = {});

// Trains a model in folder options.out. With options.resume, training of a model there continues;
// if it has finished, nothing happens. Error if another process is training there.
//
// A program that mainly trains should call keep_memory and keep_large_memory (base/memory.h) first.
//
// Every process of options.world must make this call, with the same options and data. Only rank 0
// writes, and reports its progress to `watch`. Any process may be stopped.
Trained train_model(const TrainOptions& options, const TrainWatch& watch = {});

}  // namespace attend
