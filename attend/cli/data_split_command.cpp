#include <memory>

#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/progress.h"
#include "attend/cli/written_tables.h"
#include "attend/datasets/pair_split.h"

namespace attend {

void add_data_split_command(CLI::App& data) {
  struct Options : PairSplit {
    std::vector<std::string> assignments;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto* command = data.add_subcommand(
      "split", "Split pairs into train.tsv, valid.tsv and test.tsv, at random or by a column");
  command->add_option("data", options->files.source, "TSV, CSV or JSON Lines file of pairs")
      ->type_name("FILE")
      ->required();
  command->add_option("--target", options->files.target,
                      "file of targets, if FILE holds only one source per line");
  add_column_options(*command, options->files.source_column, options->files.target_column);
  command->add_option("--split-column", options->column,
                      "column of a table with train, valid or test; default: random parts");
  command->add_option("--seed", options->seed, "random seed")->capture_default_str();
  command->add_option(
      "--set", options->assignments,
      "KEY=VALUE: data.source_units, so that all spellings of a molecule are in one part; "
      "data.pairs and data.target, for the form of lines");
  command->add_option("--out", options->folder, "Folder to write into, created if missing")
      ->type_name("DIR")
      ->required();
  add_tables_json(*command, options->json);
  command->footer(
      "80 % of the sources go to train, 10 % to valid and 10 % to test, each with all its\n"
      "targets.\n"
      "With data.source_units smiles or molecule, the spellings of one molecule count as one\n"
      "source.\n"
      "If sources are names of images or sounds, the new tables name the same files from DIR.\n"
      "attend train and attend evaluate take the folder as --data.\n"
      "\n"
      "Example:\n"
      "  attend data split esol.csv.gz --source-column smiles --target-column solubility --out "
      "data \\\n"
      "    --set data.source_units=molecule\n"
      "  attend data split molecules.csv --source-column smiles --target-column toxic \\\n"
      "    --split-column scaffold_split --out data");
  command->callback([options] {
    for (const std::string& assignment : options->assignments)
      assign({options->text.source_units_setting(), options->text.pairs_setting(),
              options->text.target_setting()},
             assignment);
    print_tables(split_pairs(*options, print_remark), options->json);
  });
}

}  // namespace attend
