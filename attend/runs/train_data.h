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

// Examples for training and validation.
struct PairData {
  TokenisedExamples train, valid;
  std::string train_file, valid_file;  // file names, for messages
  bool held_out = false;               // whether validation has a part of the training file
  PairFiles stream = {};  // source of streamed training examples; `train` is then empty
  std::string text = {}, valid_text = {};  // texts of a language model, instead of examples
  int64_t left_out = 0;                    // number of unreadable lines, images and sounds
  // Reads each image or sound once and caches its frames until training ends; null for texts.
  std::shared_ptr<FrameReader> frames = nullptr;
  SplitData graph = {};  // graph and names of the source nodes, without examples; `graph` may be
                         // null
};

// Reads the data of --data and --valid: a folder with train.tsv and valid.tsv, one TSV file, or two
// files of sources and targets. Without --valid, data that is not a folder is split by held_out()
// of the sources. The last tenth of a text and, in interactions, the last two items of each user
// are set aside. A graph's folder assigns its nodes itself. Targets that are too long for an answer
// are skipped.
//
// Remarks report skipped targets, truncated sources, a header that became a label, colours, and
// targets in another normal form than answers. They include PairReader::remarks and, with
// options.skip_bad, unreadable lines, images and sounds. Error if nothing can be learned.
// With train.shuffle_buffer, training examples are not read here, and are neither split nor
// reported.
PairData read_training_data(const TrainOptions& options, const RunConfig& config, const Tell& tell);

// Error if a text or a sound is longer than the model can read or answer. `frames` reads sounds;
// `name` is the file name for the message.
void check_lengths(const RunConfig& config, const TokenisedExamples& tokenised, FrameReader* frames,
                   const std::string& name);

}  // namespace attend
