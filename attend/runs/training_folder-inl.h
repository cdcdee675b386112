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

// Whether there is a model to train further. Error when the folder holds something else.
bool holds_model(const std::string& path);

// The folder that a model is trained in, by this process alone.
class ModelFolder {
 public:
  explicit ModelFolder(std::string path) : path_(std::move(path)) {
    if (std::filesystem::exists(path_)) lock_.emplace(take_out_folder(path_));
  }

  bool holds_model() const { return lock_ && internal::holds_model(path_); }

  // Error when it cannot be created, or when another process has begun a model there since.
  void create();

 private:
  const std::string path_;
  std::optional<FolderLock> lock_;
};

// Writes the settings with which a training of the folder continues.
void write_settings(const TrainOptions& options, TrainConfig config);

// Error where options.resume does not fit the folder, which this process writes to.
void check_resume(const TrainOptions& options, bool holds_model, const Say& say);

// Error where another process trains in the folder and this one does not see it.
void check_shared_folder(const TrainOptions& options, const Communicator& world);

}  // namespace attend::internal
