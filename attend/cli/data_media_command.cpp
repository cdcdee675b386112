#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "attend/cli/commands.h"
#include "attend/cli/written_tables.h"
#include "attend/datasets/digit_pictures.h"
#include "attend/datasets/media_sets.h"

namespace attend {
namespace {

// Options of a command that reads labelled images and writes as `Written` describes.
template <class Written>
struct ImageOptions : Written {
  bool json = false;
};

template <class Written>
void add_image_options(CLI::App& command, ImageOptions<Written>& options) {
  command.add_option("--images", options.images, "IDX file of images, also packed by gzip or xz")
      ->type_name("FILE")
      ->required();
  command.add_option("--labels", options.labels, "IDX file of the labels")
      ->type_name("FILE")
      ->required();
  command.add_option("--out", options.folder, "Folder to write into, created if missing")
      ->type_name("DIR")
      ->required();
  command.add_option("--part", options.part, "Name of the table: train, test")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->capture_default_str();
  add_tables_json(command, options.json);
}

void add_images_command(CLI::App& data) {
  auto options = std::make_shared<ImageOptions<ImageSet>>();
  auto* command = data.add_subcommand("images", "Name the images of an IDX file in a table");
  add_image_options(*command, *options);
  command
      ->add_option("--valid", options->valid, "Number of images for valid.tsv, taken from the end")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  command->footer(
      "A table that you write yourself names images as file.png, file.jpg or\n"
      "file.idx:17.\n"
      "\n"
      "Example:\n"
      "  attend data images --images train-images.gz --labels train-labels.gz --out data \\\n"
      "    --valid 5000\n"
      "  attend train --data data --out model --source-units image --target-units line");
  command->callback([options] { print_tables(write_image_tables(*options), options->json); });
}

// Options of a command that draws examples from images; `drawn` names the examples in help texts.
template <class Written>
void add_drawing_options(CLI::App& command, ImageOptions<Written>& options,
                         const std::string& drawn) {
  add_image_options(command, options);
  command.add_option("--count", options.count, drawn + " to draw")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  command
      .add_option("--valid", options.valid,
                  drawn +
                      " to draw for validation, from the last tenth of the images; training then "
                      "uses only the others")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Random seed")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
}

void add_digit_sets_command(CLI::App& data) {
  auto options = std::make_shared<ImageOptions<DigitSets>>();
  auto* command = data.add_subcommand(
      "digit-sets", "Draw sets of MNIST images, each with its number of different digits");
  add_drawing_options(*command, *options, "Sets");
  command
      ->add_option("--most", options->maximum, "Maximum number of images per set; the minimum is 1")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  attend data digit-sets --images train-images-idx3-ubyte.gz \\\n"
      "    --labels train-labels-idx1-ubyte.gz --out data --count 20000 --valid 1000\n"
      "  attend train --data data --out model --recipe digit_sets");
  command->callback([options] { print_tables(write_digit_sets(*options), options->json); });
}

void add_digits_command(CLI::App& data) {
  auto options = std::make_shared<ImageOptions<DigitRows>>();
  auto* command =
      data.add_subcommand("digits", "Draw rows of one to five digits from the images of MNIST");
  add_drawing_options(*command, *options, "Rows");
  command->footer(
      "Writes part.idx and its table. A row begins anywhere in its picture; each digit is moved\n"
      "by up to two pixels.\n"
      "\n"
      "Example:\n"
      "  attend data digits --images train-images-idx3-ubyte.gz \\\n"
      "    --labels train-labels-idx1-ubyte.gz --out data --count 20000 --valid 1000");
  command->callback([options] { print_tables(write_digit_rows(*options), options->json); });
}

void add_digit_sums_command(CLI::App& data) {
  auto options = std::make_shared<ImageOptions<DigitSums>>();
  auto* command = data.add_subcommand(
      "digit-sums",
      "Draw pictures of two digits of MNIST and the sign between them, with targets in words");
  add_drawing_options(*command, *options, "Pictures");
  command->footer(
      "Writes part.idx and its table, with targets such as three minus five is minus two, and\n"
      "part-places.tsv: picture, word, and top, left, height and width in pixels of each digit\n"
      "and sign. They are placed from left to right at random places, each at its own height.\n"
      "\n"
      "Example:\n"
      "  attend data digit-sums --images train-images-idx3-ubyte.gz \\\n"
      "    --labels train-labels-idx1-ubyte.gz --out data --count 20000 --valid 1000\n"
      "  attend train --data data --out model --recipe digit_sums");
  command->callback([options] { print_tables(write_digit_sums(*options), options->json); });
}

struct SoundOptions {
  std::string recordings, folder;
  bool json = false;
};

void add_sounds_command(CLI::App& data) {
  auto options = std::make_shared<SoundOptions>();
  auto* command = data.add_subcommand(
      "sounds", "Split recordings named LABEL_SPEAKER_INDEX.wav into train, valid and test");
  command->add_option("recordings", options->recordings, "Folder of the recordings")
      ->type_name("DIR")
      ->required();
  command->add_option("--out", options->folder, "Folder to write into, created if missing")
      ->type_name("DIR")
      ->required();
  add_tables_json(*command, options->json);
  command->footer(
      "Indices 0 to 4 are for testing, as in the Free Spoken Digit Dataset, and 5 to 9 for\n"
      "validation.\n"
      "Recordings with other names need no command: attend train reads a table with lines\n"
      "file.wav TAB target.\n"
      "\n"
      "Example:\n"
      "  attend data sounds recordings --out data\n"
      "  attend train --data data --out model --source-units sound --target-units line");
  command->callback([options] {
    print_tables(write_sound_tables(options->recordings, options->folder), options->json);
  });
}

}  // namespace

void add_data_media_commands(CLI::App& data) {
  add_images_command(data);
  add_digits_command(data);
  add_digit_sums_command(data);
  add_digit_sets_command(data);
  add_sounds_command(data);
}

}  // namespace attend
