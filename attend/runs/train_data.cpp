#include "attend/runs/train_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "attend/base/error.h"
#include "attend/data/split.h"
#include "attend/data/tables.h"
#include "attend/data/text_codec.h"
#include "attend/data/text_lines.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

PairFiles training_files(const TrainOptions& options) {
  if (fs::is_directory(options.data)) return {options.data + "/train.tsv"};
  return {options.data, options.target, options.source_column, options.target_column};
}

PairFiles validation_files(const TrainOptions& options) {
  if (options.valid.empty()) return {options.data + "/valid.tsv"};
  return {options.valid, options.valid_target, options.source_column, options.target_column};
}

std::vector<Example> read_examples(const PairFiles& files, const TextConfig& text, const Say& say) {
  if (files.target.empty()) return read_table(files, text.reads_frames());
  auto [examples, skipped] = read_parallel(files.source, files.target, {.skip_empty = true});
  if (skipped > 0)
    say(fmt::format("attend: {}: {} pairs with an empty side are left out", files.source, skipped));
  return std::move(examples);
}

void check_targets(const TrainOptions& options, const TextConfig& text) {
  if (!options.target.empty() && text.reads_frames())
    fail("--target {}: images and sounds are named in a TSV file with their targets",
         options.target);
  if (!options.target.empty() && fs::is_directory(options.data))
    fail("--target {}: but --data {} is a folder; give the file of the sources", options.target,
         options.data);
  if (!options.valid_target.empty() && options.valid.empty())
    fail("--valid-target {}: needs --valid, the file of the sources", options.valid_target);
  if (!options.target.empty() && !options.valid.empty() && options.valid_target.empty())
    fail("--valid {}: its targets are missing; give --valid-target", options.valid);
}

// A single file is split by a hash of the source, as the dictionary is.
PairData split(std::vector<Example> all, const std::string& name) {
  PairData data;
  const size_t count = all.size();
  for (Example& example : all)
    (part_of(example.source) == Part::valid ? data.valid : data.train)
        .push_back(std::move(example));
  if (data.valid.empty() || data.train.empty())
    fail("{}: {} sources are too few to set some aside for validation; give --valid FILE", name,
         count);
  return data;
}

PairData read_data(const TrainOptions& options, const TextConfig& text, const Say& say) {
  std::vector<Example> train = read_examples(training_files(options), text, say);
  if (options.valid.empty() && !fs::is_directory(options.data))
    return split(std::move(train), options.data);
  return {std::move(train), read_examples(validation_files(options), text, say)};
}

PairData read_streamed(const TrainOptions& options, const TextConfig& text, const Say& say) {
  if (text.reads_frames())
    fail("train.shuffle_buffer: is for texts; images and sounds are held in memory: set it to 0");
  if (options.valid.empty() && !fs::is_directory(options.data))
    fail("--valid is missing: with train.shuffle_buffer, --data {} is not split", options.data);
  return {{}, read_examples(validation_files(options), text, say), training_files(options)};
}

std::string target_limit(const RunConfig& config) {
  return config.model.continues() ? "half of model.context"
                                  : "3 x model.maximum_source_length + 10";
}

// The time of a step grows with the square of its longest target, so that one target that no answer
// could equal would stop training for good.
void leave_out_long_targets(const RunConfig& config, const TextCodec& codec,
                            std::vector<Example>& examples, const std::string& name,
                            const Say& say) {
  const auto longest = static_cast<size_t>(config.model.chosen().maximum_target_length());
  size_t left_out = 0;
  for (Example& example : examples)
    left_out += std::erase_if(example.targets, [&](const std::string& target) {
      return codec.split(target).size() > longest;
    });
  if (left_out == 0) return;
  std::erase_if(examples, [](const Example& example) { return example.targets.empty(); });
  say(fmt::format(
      "attend: {}: {} targets of over {} tokens are left out: no answer is that long ({})", name,
      left_out, longest, target_limit(config)));
  if (examples.empty()) fail("{}: holds no other targets; split them", name);
}

void tell_cut_sources(const RunConfig& config, const TextCodec& codec,
                      const std::vector<Example>& examples, const std::string& name,
                      const Say& say) {
  if (config.text.reads_frames()) return;  // how long they are is known when they are read
  const auto longest = static_cast<size_t>(config.model.chosen().maximum_source_length());
  const auto cut = std::count_if(examples.begin(), examples.end(), [&](const Example& example) {
    return codec.split(example.source).size() > longest;
  });
  if (cut > 0)
    say(fmt::format(
        "attend: {}: {} sources are cut to their {} {} tokens ({})", name, cut,
        config.model.continues() ? "last" : "first", longest,
        config.model.continues() ? "half of model.context" : "model.maximum_source_length"));
}

// The last tenth, from the beginning of a character on.
void set_last_tenth_aside(PairData& data, const std::string& name) {
  size_t cut = data.text.size() * 9 / 10;
  while (cut > 0 && (static_cast<unsigned char>(data.text[cut]) & 0xc0) == 0x80) --cut;
  data.valid_text = data.text.substr(cut);
  data.text.resize(cut);
  if (cut == 0) fail("{}: is too short to set some aside for validation; give --valid FILE", name);
}

PairData read_texts(const TrainOptions& options, const RunConfig& config) {
  if (config.train.shuffle_buffer > 0)
    fail("train.shuffle_buffer: is for pairs; a text is held in memory: set it to 0");
  if (config.train.metric != "loss")
    fail("train.metric = {}: compares answers, of which a text has none; set it to loss",
         config.train.metric);
  const bool folder = fs::is_directory(options.data);
  PairData data;
  data.text = read_text(folder ? options.data + "/train.txt" : options.data);
  if (folder || !options.valid.empty())
    data.valid_text =
        read_text(options.valid.empty() ? options.data + "/valid.txt" : options.valid);
  else
    set_last_tenth_aside(data, options.data);
  return data;
}

PairData read_text_lines(const TrainOptions& options, const RunConfig& config) {
  const PairData texts = read_texts(options, config);
  PairData data{lines_of(texts.text), lines_of(texts.valid_text)};
  if (data.valid.empty())
    fail("{}: holds no line to set aside for validation; give --valid FILE", options.data);
  return data;
}

// Of an image 0: its size is checked where it is read.
int64_t source_length(const TextConfig& text, const TextCodec& codec, const std::string& source) {
  if (text.reads_images()) return 0;
  if (text.reads_frames()) return sound_frames(source, text.frames).size(0);
  return static_cast<int64_t>(codec.split(source).size());
}

}  // namespace

void check_lengths(const RunConfig& config, const TextCodecs& codecs,
                   const std::vector<Example>& examples, const std::string& name) {
  const int64_t longest_source = config.model.chosen().maximum_source_length();
  const int64_t longest_target = config.model.chosen().maximum_target_length();
  for (const Example& example : examples) {
    const int64_t tokens = source_length(config.text, codecs.source, example.source);
    if (tokens > longest_source)
      fail(
          "{}: source {} has {} tokens, over model.maximum_source_length = {}; raise that, or "
          "have it cut without --strict",
          name, in_quotes(example.source), tokens, longest_source);
    for (const std::string& target : example.targets) {
      const auto answered = static_cast<int64_t>(codecs.target.split(target).size());
      if (answered > longest_target)
        fail(
            "{}: target {} has {} tokens, over {} ({}); raise that, or have it left out without "
            "--strict",
            name, in_quotes(target), answered, longest_target, target_limit(config));
    }
  }
}

PairData read_training_data(const TrainOptions& options, const RunConfig& config, const Say& say) {
  if (!fs::exists(options.data)) fail("--data {}: no such file or folder", options.data);
  check_targets(options, config.text);
  const bool text =
      options.target.empty() && config.model.row().learns_from_text() && names_text(options.data);
  if (text && config.model.continues()) return read_texts(options, config);
  const bool streamed = config.train.shuffle_buffer > 0;
  PairData data = text       ? read_text_lines(options, config)
                  : streamed ? read_streamed(options, config.text, say)
                             : read_data(options, config.text, say);
  const TextCodecs codecs = make_codecs(config.text);
  for (auto* examples : {&data.train, &data.valid}) {
    const std::string part =
        options.data + (examples == &data.train ? ", training" : ", validation");
    if (options.strict) check_lengths(config, codecs, *examples, part);
    leave_out_long_targets(config, codecs.target, *examples, part, say);
    tell_cut_sources(config, codecs.source, *examples, part, say);
  }
  if (!streamed) check_pairs(data.train, codecs.target, options.data);
  return data;
}

}  // namespace attend
