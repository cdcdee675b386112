#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "attend/parallel/communicator.h"
#include "attend/runs/out_folder.h"
#include "attend/runs/training.h"
#include "attend/train/train_config.h"

namespace attend::internal {

// Whether the folder holds a model to resume. Error if it holds something else.
bool holds_model(const std::string& path);

// The folder of a training, locked by this process.
class ModelFolder {
 public:
  explicit ModelFolder(std::string path) : path_(std::move(path)) {
    if (std::filesystem::exists(path_)) lock_.emplace(take_out_folder(path_));
  }

  bool holds_model() const { return lock_ && internal::holds_model(path_); }

  // Error if it cannot be created, or if another process has begun a model there meanwhile.
  void create();

 private:
  const std::string path_;
  std::optional<FolderLock> lock_;
};

// Writes the settings for resuming a training of the folder.
void write_settings(const TrainOptions& options, TrainConfig config);

// Error if options.resume does not fit the folder that this process writes to.
void check_resume(const TrainOptions& options, bool holds_model, const Say& say);

// Error if another process trains in the folder but this process does not see it.
void check_shared_folder(const TrainOptions& options, const Communicator& world);

}  // namespace attend::internal
