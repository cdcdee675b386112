#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/files/idx.h"

namespace attend {

// Training data with images or sounds as sources: tables of lines "file TAB target", with file
// names relative to the table's folder.

struct WrittenTable {
  std::string name;  // "train", "valid", "test"
  std::string path;
  int64_t examples = 0;
};

struct LabelledImages {
  IdxArray images;  // [count, height, width]
  IdxArray labels;  // [count]
};

// Errors as read_idx; also if the shapes are wrong or the numbers of images and labels differ.
LabelledImages read_labelled_images(const std::string& images, const std::string& labels);

struct ImageSet {
  std::string images, labels;  // IDX files
  std::string folder;          // folder to write into, created if missing
  std::string part = "train";  // name of the table
  int64_t valid = 0;           // number of images set aside in valid.tsv, from the end
};

// Writes part.tsv and valid.tsv with the names of the images in the IDX file; targets are their
// labels. Errors as read_labelled_images; also if no images are left.
std::vector<WrittenTable> write_image_tables(const ImageSet& set);

// Examples to draw from such images: `valid` examples from the last tenth of the images, the others
// from the rest.
struct DrawnImages : ImageSet {
  int64_t count = 20000;  // examples of part.tsv
  int64_t seed = 1;       // random seed
};

// Sets of one to `most` digits.
struct DigitSets : DrawnImages {
  int64_t maximum = 6;
};

// Writes part.tsv and valid.tsv with the image names of each set, joined by blanks; targets are the
// number of distinct digits. Errors as read_labelled_images; also if the name of the images has a
// blank.
std::vector<WrittenTable> write_digit_sets(const DigitSets& sets);

// Writes train.tsv, valid.tsv and test.tsv for the files LABEL_SPEAKER_INDEX.wav in a folder, named
// as in the Free Spoken Digit Dataset. Indices 0 to 4 are the test set, as in that data set; 5 to 9
// are for validation. Error if a .wav has another name or a table would be empty.
std::vector<WrittenTable> write_sound_tables(const std::string& recordings,
                                             const std::string& folder);

}  // namespace attend
