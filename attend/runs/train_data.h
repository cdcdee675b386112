#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/source_kind.h"
#include "attend/data/split_data.h"
#include "attend/data/tokenised.h"
#include "attend/runs/run_config.h"

namespace attend {

// Examples to train and to validate with.
struct PairData {
  TokenisedExamples train, valid;
  std::string train_file, valid_file;  // where they are, for messages
  PairFiles stream = {};  // where training examples are read as they go; `train` is then empty
  std::string text = {}, valid_text = {};  // what a language model reads in place of examples
  int64_t left_out = 0;                    // lines, images and sounds that cannot be read
  // Reads each image or sound once and holds its frames until training ends; null: of texts.
  std::shared_ptr<FrameReader> frames = nullptr;
  SplitData graph = {};  // whose nodes the sources are, without its examples; or a null `graph`
};

// What --data and --valid name: a folder with train.tsv and valid.tsv, one TSV file, which is split
// by a hash of the source where --valid is not given, or two files of sources and targets. Targets
// that no answer could equal are left out. `tell` takes this, sources that are cut and, with
// options.skip_bad, lines, images and sounds that cannot be read, as well as PairReader::remarks, a
// header that became a label, targets in another normal form than answers, colours. Error where
// nothing could be learned. With train.shuffle_buffer the training examples are not read here, and
// are neither split nor reported. Without --valid the last tenth of a text is set aside;
// of interactions the last two items of each user. A graph's folder says which node is for what.
PairData read_training_data(const TrainOptions& options, const RunConfig& config, const Tell& tell);

// Error where a text or a sound is longer than the model reads or answers; `frames` reads sounds,
// `name` is the file's, for the message.
void check_lengths(const RunConfig& config, const TokenisedExamples& tokenised, FrameReader* frames,
                   const std::string& name);

}  // namespace attend
