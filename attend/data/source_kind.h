#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attend/data/frame_config.h"
#include "attend/data/pairs.h"
#include "attend/data/source_shape.h"
#include "attend/files/image.h"

namespace attend {

// Properties of one file before its conversion to frames.
struct FileForm {
  std::array<int64_t, 2> size = {};  // pixels down and across; or samples per second
  bool coloured = false;             // colours are converted to grey
  bool transparent = false;          // some pixels are transparent
};

// Reads files of one kind, or sources that contain their data, such as sets and molecules. Errors
// name the file, or the invalid part of the source.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  virtual FileForm form(const std::string& name) = 0;
  // Returns frames [S, SourceShape::depth()], float. The frames of a set have a canonical order,
  // independent of the source. Error if the form does not match the configuration.
  virtual at::Tensor read(const std::string& name) = 0;
  // Number of coloured images that read() has converted to grey.
  virtual int64_t converted_to_grey() const { return 0; }
};

// A kind of sources that are read as frames: names of files, sets or molecules. Other sources are
// texts.
struct SourceKind {
  const char* name;  // value of data.source_units
  bool has_colours;  // files may have colours, which are read if the configuration says so
  // The setting that divides the numbers of frames; null: not needed, they are near 1.
  const char* scale_key = nullptr;
  // Returns whether a source looks like the name of such a file. Null: sources are not names and
  // could be texts.
  bool (*names)(std::string_view source);
  // Returns the source with its file names relative to the folder of that table. Null: sources do
  // not name files and can be checked directly.
  std::string (*placed)(const std::string& source, const std::string& table);
  // Sets the open values of the configuration from the first training source.
  void (*measure)(const std::string& source, FrameConfig& config);
  SourceShape (*shape)(const FrameConfig& config);
  std::unique_ptr<FrameReader> (*reader)(const FrameConfig& config);
  // Returns names of the first `count` frames of a source: "0.03 s"; "row 1, column 2", counted
  // from 1; or an element of a set or an atom as it is written.
  std::vector<std::string> (*frame_names)(const std::string& source, const FrameConfig& config,
                                          int64_t count);
  // Returns a picture of the frames: the image; the images of a set from left to right; or a
  // sound's spectrogram with time to the right, bands upwards and black for the lowest energy.
  // Null: no picture.
  Image (*picture)(const at::Tensor& frames, const FrameConfig& config);
};

// Reads each file once and keeps the frames of all files in memory. They are shared and must not be
// modified. Open values of the configuration are set from the first readable file. Not thread-safe.
class FrameCache : public FrameReader {
 public:
  FrameCache(const SourceKind& kind, const FrameConfig& config) : kind_(kind), config_(config) {}

  FileForm form(const std::string& name) override { return reader(name).form(name); }
  at::Tensor read(const std::string& name) override;
  int64_t converted_to_grey() const override {
    return reader_ == nullptr ? 0 : reader_->converted_to_grey();
  }

 private:
  FrameReader& reader(const std::string& name);

  const SourceKind& kind_;
  FrameConfig config_;
  std::unique_ptr<FrameReader> reader_;
  std::unordered_map<std::string, at::Tensor> frames_;
};

// Images, sounds, sets of numbers or images, and molecules in SMILES.
const std::vector<SourceKind>& source_kinds();

// Returns the kind with that name in data.source_units; null for texts.
const SourceKind* source_kind(std::string_view units);

// Returns the kind of files that most of the first sources name; null if they are texts or none of
// the named files can be read. `table` as in placed_source().
const SourceKind* named_files(const std::vector<Example>& examples, const std::string& table);

// Relative names of files in a table are relative to its folder.
std::string placed_source(const std::string& source, const std::string& table);
void place_sources(std::vector<Example>& examples, const SourceKind& kind,
                   const std::string& table);

}  // namespace attend
