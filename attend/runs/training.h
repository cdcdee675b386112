#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/data/pairs.h"
#include "attend/metrics/metric.h"
#include "attend/nn/device_placement.h"
#include "attend/train/train_progress.h"

namespace attend {

class Communicator;

// The treatment of tokens of the data that the model of TrainOptions::init does not have: its
// vocabularies are extended by them, or stay, so that they are read as unknown.
enum class InitVocabulary { extend, keep };
inline EnumNames names_of(InitVocabulary) { return {"extend", "keep"}; }

// What `attend train` is told.
struct TrainOptions {
  std::string data, target, valid, valid_target, out, config, init;
  InitVocabulary init_vocabulary = InitVocabulary::extend;
  std::vector<std::string> assignments;
  std::string source_units, target_units;
  std::string source_column, target_column;  // of a CSV file, as CsvReader takes them
  DevicePlacement placement;
  bool resume = false, strict = false;
  bool skip_bad =
      false;  // lines, images and sounds that cannot be read are left out; else an Error
  Communicator* world = nullptr;  // the processes that train together (connect); null: one
};

// Is told a line of what a run does, without its end.
using Say = std::function<void(const std::string& line)>;

// Who follows a training; what is left out is not called.
struct TrainWatch {
  Say say = [](const std::string&) {};
  // What a person should know of the data: what cannot be read, is cut or left out.
  Tell remark = [](const std::string&) {};
  std::function<void(const TrainProgress&, const Metric&)> progress = {};
  // Called before the first file is written; errors of the command and the data are thrown earlier.
  std::function<void()> begin = {};
  // Once it is true, the training saves everything and ends with outcome.interrupted.
  const std::atomic<bool>* stop = nullptr;
};

struct Trained {
  TrainOutcome outcome;
  Metric metric;  // of outcome.best_metric
};

// The configuration as a TOML document: flag > environment > file > default; with options.resume
// and a model in options.out, flag > environment > file > that model's. Error on settings that do
// not fit.
std::string training_config(const TrainOptions& options);

// The pairs of a TSV file as a model that options describe reads them, in a test. Error on settings
// that do not fit, and as read_pairs.
std::vector<Example> read_test(const TrainOptions& options, const std::string& path,
                               const Tell& tell = {});

// Trains a model into options.out. With options.resume a model there is trained further; where it
// was trained to its end, nothing happens. Error when another process is training there.
//
// A program that does little else calls keep_memory (base/memory.h) before.
//
// Every process of options.world makes this call, with the same options and data. Only rank 0
// writes, and reports its progress to `watch`; any of them may be stopped.
Trained train_model(const TrainOptions& options, const TrainWatch& watch = {});

}  // namespace attend
