#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/data/idx.h"

namespace attend {

// Data to train on whose sources are images or sounds: tables of lines "file TAB target", in which
// a file is named as the table's folder sees it.

struct WrittenTable {
  std::string name;  // "train", "valid", "test"
  std::string path;
  int64_t examples = 0;
};

struct LabelledImages {
  IdxArray images;  // [count, height, width]
  IdxArray labels;  // [count]
};

// Error as read_idx, on arrays of another shape and where there are not as many of both.
LabelledImages read_labelled_images(const std::string& images, const std::string& labels);

struct ImageSet {
  std::string images, labels;  // IDX files
  std::string folder;          // to write into, created where it is missing
  std::string part = "train";  // the table's name
  int64_t valid = 0;           // how many, the last ones, are set aside in valid.tsv
};

// part.tsv and valid.tsv, whose lines name the images of the IDX file; targets are their labels.
// Error as read_labelled_images, and where none are left.
std::vector<WrittenTable> write_image_tables(const ImageSet& set);

// What is drawn from such images: `valid` examples from the last tenth of them, the others from the
// rest.
struct DrawnImages : ImageSet {
  int64_t count = 20000;  // examples of part.tsv
  int64_t seed = 1;       // of what is drawn
};

// Sets of one to `most` digits.
struct DigitSets : DrawnImages {
  int64_t most = 6;
};

// part.tsv and valid.tsv, whose lines name the images of a set, with blanks between; targets are
// how many different digits it has. Error as read_labelled_images, and where the name of the images
// has a blank.
std::vector<WrittenTable> write_digit_sets(const DigitSets& sets);

// train.tsv, valid.tsv and test.tsv of the files LABEL_SPEAKER_INDEX.wav in a folder, as the Free
// Spoken Digit Dataset has them: indices 0 to 4 are its test, 5 to 9 are taken for validation.
// Error on a .wav of another name, and where a table would be empty.
std::vector<WrittenTable> write_sound_tables(const std::string& recordings,
                                             const std::string& folder);

}  // namespace attend
