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

// Measures the averaged weights on train.validation_examples, spread over all of them. In a text
// they are windows, each after the token before it. Every process measures its share; all get the
// same figures.
class Validator {
 public:
  Validator(const RunConfig& config, const PairModel& model, const PairData& data,
            std::shared_ptr<PairNetwork> averaged, Communicator& world);

  const Metric& metric() const { return metric_; }

  // How many examples, or windows of a text, are measured by all processes together, and how many
  // there are.
  int64_t measured() const { return measured_; }
  int64_t available() const { return available_; }

  // Differs for other examples.
  uint64_t fingerprint() const { return fingerprint_; }

  // The metric is NaN where the weights give no probabilities.
  Validation operator()();

 private:
  const Metric& metric_;
  Communicator& world_;
  std::vector<Example> examples_;
  std::vector<EncodedPair> pairs_;
  Model averaged_;  // packed before it answers, for the weights are others each time
  uint64_t fingerprint_ = 0;
  int64_t measured_ = 0, available_ = 0;
  double tokens_ = 0;      // of the targets here
  double all_tokens_ = 1;  // of all processes
};

}  // namespace attend
