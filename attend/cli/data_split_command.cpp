#include <memory>

#include "attend/cli/commands.h"
#include "attend/cli/decode_options.h"
#include "attend/cli/progress.h"
#include "attend/cli/written_tables.h"
#include "attend/data/pair_split.h"

namespace attend {

void add_data_split_command(CLI::App& data) {
  struct Options : PairSplit {
    std::vector<std::string> assignments;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto* command = data.add_subcommand(
      "split", "Share pairs out among train.tsv, valid.tsv and test.tsv, by chance or by a column");
  command->add_option("data", options->files.source, "TSV or CSV file of pairs")
      ->type_name("FILE")
      ->required();
  command->add_option("--target", options->files.target,
                      "the file of targets, where FILE holds a source a line alone");
  add_column_options(*command, options->files.source_column, options->files.target_column);
  command->add_option("--split-column", options->column,
                      "of a CSV file: where rows say train, valid or test; else parts are drawn");
  command->add_option("--seed", options->seed, "of what is drawn")->capture_default_str();
  command->add_option("--set", options->assignments,
                      "KEY=VALUE: data.source_units, so that spellings of one molecule are in one "
                      "part");
  command->add_option("--out", options->folder, "Folder to write into, created when missing")
      ->type_name("DIR")
      ->required();
  add_tables_json(*command, options->json);
  command->footer(
      "Of the sources 80 % go to train, 10 % to valid and 10 % to test, each with all its "
      "targets.\n"
      "With data.source_units smiles or molecule, the spellings of one molecule count as one "
      "source.\n"
      "attend train and attend evaluate take the folder as --data.\n\n"
      "Example:\n"
      "  attend data split esol.csv.gz --source-column smiles --target-column solubility --out "
      "data \\\n"
      "    --set data.source_units=molecule\n"
      "  attend data split molecules.csv --source-column smiles --target-column toxic \\\n"
      "    --split-column scaffold_split --out data");
  command->callback([options] {
    for (const std::string& assignment : options->assignments)
      assign({options->text.source_units_setting()}, assignment);
    print_tables(split_pairs(*options, print_remark), options->json);
  });
}

}  // namespace attend
