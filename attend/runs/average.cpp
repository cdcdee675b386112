#include "attend/runs/average.h"

#include <set>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/models/model_folder.h"
#include "attend/models/pair_model.h"
#include "attend/runs/out_folder.h"
#include "attend/train/recent_weights.h"

namespace attend {
namespace {

// This file is written first and config.toml last: a folder with only this file holds an unfinished
// average.
constexpr const char* average_mark = "average.toml";

void check_unused(const std::string& folder) {
  const std::set<std::string> names = names_in(folder);
  const bool unfinished = names.contains(average_mark) && !names.contains("config.toml");
  if (!names.empty() && !unfinished) fail("--out {}: exists already; choose a new folder", folder);
}

}  // namespace

std::vector<int64_t> average_model(const std::string& folder, const std::string& out,
                                   int64_t count) {
  if (count < 1) fail("[average] the mean of the last {} validations; take 1 or more", count);
  const PairModel model = load_description(folder);
  std::vector<int64_t> steps = kept_steps(folder);
  if (static_cast<int64_t>(steps.size()) > count) steps.erase(steps.begin(), steps.end() - count);
  if (steps.empty())
    fail("{}: keeps no weights to average; train with --set train.keep_checkpoints={}", folder,
         count);
  const FolderLock lock = take_out_folder(out);
  check_unused(out);
  write_file(fmt::format("{}/{}", out, average_mark),
             fmt::format("# The mean of the weights that a training had after\nsteps = [{}]\n",
                         fmt::join(steps, ", ")));
  average_weights(folder, steps, out + "/weights.safetensors");
  save_description(model, out);
  return steps;
}

}  // namespace attend
