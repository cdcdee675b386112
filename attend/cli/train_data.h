#pragma once

#include <string>
#include <vector>

#include "attend/cli/run_config.h"
#include "attend/data/pairs.h"

namespace attend {

struct PairData {
  std::vector<Example> train, valid;
  PairFiles stream = {};  // where training examples are read as they go; `train` is then empty
};

// What --data and --valid name: a folder with train.tsv and valid.tsv, one TSV file, which is split
// by a hash of the source where --valid is not given, or two files of sources and targets. Targets
// that no answer could equal are left out, and a line on standard error says so; another tells of
// sources that are cut. Error where nothing could be learned. With train.shuffle_buffer the
// training examples are not read here, and are neither split nor told of.
PairData read_training_data(const TrainOptions& options, const RunConfig& config);

// Error where a text is longer than the model reads or answers; `name` is the file's, for the
// message.
void check_lengths(const RunConfig& config, const TextCodecs& codecs,
                   const std::vector<Example>& examples, const std::string& name);

}  // namespace attend
