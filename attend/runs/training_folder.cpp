#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/runs/training_folder-inl.h"

namespace attend::internal {
namespace {

namespace fs = std::filesystem;

// Whether a start was killed before its first checkpoint. The folder then holds training.toml,
// which is written first, and parts of the description, which the command can recreate. Weights of
// --init are not stored, so training cannot continue from it.
bool is_unfinished_start(const std::set<std::string>& names) {
  static const std::set<std::string> first = {
      "training.toml", "source.vocab", "target.vocab",         "bpe.codes",
      "source.bpe",    "target.bpe",   "config.toml",          "tokenizer.json",
      "source.spm",    "target.spm",   "target_tokenizer.json"};
  return names.contains("training.toml") &&
         std::includes(first.begin(), first.end(), names.begin(), names.end());
}

}  // namespace

bool holds_model(const std::string& path) {
  const std::set<std::string> names = names_in(path);
  if (names.empty() || is_unfinished_start(names)) return false;
  if (!names.contains("config.toml"))
    fail("--out {}: holds other files and no model; choose a new folder", path);
  return true;
}

void ModelFolder::create() {
  if (lock_) return;
  lock_.emplace(take_out_folder(path_));
  if (!names_in(path_).empty())
    fail("--out {}: another process has begun a model there; choose another folder", path_);
}

void write_settings(const TrainOptions& options, TrainConfig config) {
  write_file(options.out + "/training.toml", to_toml(config.settings(), /*with_help=*/true));
}

void check_resume(const TrainOptions& options, bool holds_model, const Say& say) {
  if (holds_model && !options.resume)
    fail(
        "--out {}: holds a model already; add --resume to train it further, or choose a new folder",
        options.out);
  if (holds_model && !fs::exists(options.out + "/checkpoint.safetensors"))
    fail(
        "--resume: {0} holds a model without checkpoint.safetensors to continue from; begin "
        "another "
        "with its weights: --init {0}",
        options.out);
  if (options.resume && !holds_model && fs::exists(options.out) && !names_in(options.out).empty())
    say(fmt::format("{} was left before its first checkpoint; training begins as this command says",
                    options.out));
}

void check_shared_folder(const TrainOptions& options, const Communicator& world) {
  if (!fs::exists(options.out + "/config.toml"))
    fail(
        "--out {}: rank {} finds no config.toml there, and rank 0 does; all processes must share "
        "the folder, or have a copy of it",
        options.out, world.rank());
}

}  // namespace attend::internal
