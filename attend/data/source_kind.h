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
#include "attend/data/image.h"
#include "attend/data/pairs.h"

namespace attend {

// What one file is, before it becomes frames.
struct FileForm {
  std::array<int64_t, 2> size = {};  // pixels down and across; samples per second
  bool coloured = false;             // colours are read in grey
  bool transparent = false;          // some pixels are transparent
};

// Reads files of one kind, or what the source itself writes, as sets and molecules. Errors name the
// file, or what of the source cannot be read.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  virtual FileForm form(const std::string& name) = 0;
  // The frames [S, FrameShape::depth], float; those of a set in an order of its own, whatever the
  // one that it is written in. Error on another form than the configuration has.
  virtual at::Tensor read(const std::string& name) = 0;
  // How many images in colour read() has read in grey so far.
  virtual int64_t greyed() const { return 0; }
};

// How the frames of a source lie: on a grid, all sources alike, or in a row as long as the source.
struct FrameShape {
  int64_t depth = 0;              // numbers of a frame
  int64_t rows = 0, columns = 0;  // of the grid; 0: there is none
  int64_t channels = 1;           // of each pixel of an image, one after another in a frame
  // Patches down and across of each frame, where a frame is a whole image; 0: it is none.
  int64_t frame_rows = 0, frame_columns = 0;
  // Where frames see their neighbours alone, as the atoms of a molecule do, how many neighbours a
  // frame has at most. Its last numbers are so many steps, from its place to those of its
  // neighbours, and then of what kind the edge to each of them is, from 1; 0: there is none.
  int64_t neighbours = 0;
  int64_t neighbour_kinds = 0;  // 1 more than the largest of them
};

// A kind of sources that are read as frames: they name files, or are sets or molecules. Sources of
// no kind are texts.
struct SourceKind {
  const char* name;  // in data.source_units
  bool on_grid;      // frames of all sources lie on one grid, else in a row
  bool has_colours;  // its files may have some, which are read where the configuration says so
  // The setting that divides the numbers of frames; null: they are near 1 by themselves.
  const char* scale_key = nullptr;
  // Whether a source is written as the name of such files. Null: it names none and could be a text.
  bool (*names)(std::string_view source);
  // The source where the files that it names are in the folder of that table. Null: a source names
  // none and can be checked by itself.
  std::string (*placed)(const std::string& source, const std::string& table);
  // Sets what the configuration leaves open by the first source of training.
  void (*measure)(const std::string& source, FrameConfig& config);
  FrameShape (*shape)(const FrameConfig& config);
  std::unique_ptr<FrameReader> (*reader)(const FrameConfig& config);
  // What the first `count` frames of a source are called: "row 1, column 2", counted from 1,
  // "0.03 s", or an element of a set or an atom as it is written there.
  std::vector<std::string> (*frame_names)(const std::string& source, const FrameConfig& config,
                                          int64_t count);
  // What frames show: the image, those of a set from left to right, or a sound's spectrogram, time
  // to the right, its bands upwards, from the least energy, black, to the largest. Null: nothing.
  Image (*picture)(const at::Tensor& frames, const FrameConfig& config);
};

// Reads each file once and holds its frames, all of them, while it lives; they are shared, so that
// nobody may write into them. What the configuration leaves open is taken from the first file that
// can be read. For one thread.
class KeptFrames : public FrameReader {
 public:
  KeptFrames(const SourceKind& kind, const FrameConfig& config) : kind_(kind), config_(config) {}

  FileForm form(const std::string& name) override { return reader(name).form(name); }
  at::Tensor read(const std::string& name) override;
  int64_t greyed() const override { return reader_ == nullptr ? 0 : reader_->greyed(); }

 private:
  FrameReader& reader(const std::string& name);

  const SourceKind& kind_;
  FrameConfig config_;
  std::unique_ptr<FrameReader> reader_;
  std::unordered_map<std::string, at::Tensor> frames_;
};

// Images, sounds, sets of numbers or images, and molecules in SMILES.
const std::vector<SourceKind>& source_kinds();

// The kind that data.source_units names; null: texts.
const SourceKind* source_kind(std::string_view units);

// Files that a table names are in its folder, unless they begin with a slash.
std::string placed_source(const std::string& source, const std::string& table);
void place_sources(std::vector<Example>& examples, const SourceKind& kind,
                   const std::string& table);

}  // namespace attend
