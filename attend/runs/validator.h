#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attend/data/batches.h"
#include "attend/data/pairs.h"
#include "attend/inference/model.h"
#include "attend/metrics/metric.h"
#include "attend/parallel/communicator.h"
#include "attend/runs/run_config.h"
#include "attend/runs/train_data.h"
#include "attend/train/train_progress.h"

namespace attend {

// Measures the averaged weights on train.validation_examples examples, spread over the validation
// data. For a text, examples are windows, each after one preceding token. Every process measures
// its share; all get the same results.
class Validator {
 public:
  Validator(const RunConfig& config, const PairModel& model, const PairData& data,
            std::shared_ptr<PairNetwork> averaged, Communicator& world);

  const Metric& metric() const { return metric_; }

  // Number of examples, or windows of a text, that all processes together measure, and number
  // available.
  int64_t measured() const { return measured_; }
  int64_t available() const { return available_; }

  // Hash of the measured examples.
  uint64_t fingerprint() const { return fingerprint_; }

  // The metric is NaN if the weights give no valid probabilities.
  Validation operator()();

 private:
  const Metric& metric_;
  Communicator& world_;
  std::vector<Example> examples_;
  std::vector<EncodedPair> pairs_;
  Model averaged_;  // repacked for each validation, because the weights change
  uint64_t fingerprint_ = 0;
  int64_t measured_ = 0, available_ = 0;
  double tokens_ = 0;      // number of target tokens of this process
  double all_tokens_ = 1;  // total over all processes
};

}  // namespace attend
