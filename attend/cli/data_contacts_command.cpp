#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/cli/commands.h"
#include "attend/datasets/planted_contacts.h"
#include "attend/files/json_line.h"

namespace attend {
namespace {

struct ContactsOptions {
  PlantedContacts planted;
  std::string folder;
  bool json = false;
};

void run_contacts(const ContactsOptions& options) {
  const PlantedContacts& planted = options.planted;
  const std::vector<Contact> contacts = write_planted_contacts(options.folder, planted);
  if (options.json)
    fmt::print("{}\n", json_line(nlohmann::json{{"path", options.folder},
                                                {"train_proteins", planted.count},
                                                {"valid_proteins", planted.valid},
                                                {"contacts", contacts}}));
  else
    fmt::print("{} proteins, {} for validation, and their {} contacts: {}\n", planted.count,
               planted.valid, contacts.size(), options.folder);
}

}  // namespace

void add_data_contacts_command(CLI::App& data) {
  auto options = std::make_shared<ContactsOptions>();
  PlantedContacts& planted = options->planted;
  auto* command = data.add_subcommand(
      "contacts", "Write proteins in which pairs of residues far apart change together");
  command
      ->add_option("--out", options->folder,
                   "folder for train.fasta, valid.fasta and contacts.tsv, created if missing")
      ->required();
  command->add_option("--count", planted.count, "number of training proteins")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--valid", planted.valid, "number of validation proteins")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--length", planted.length, "number of residues per protein")
      ->check(CLI::Range(12, 100'000))
      ->capture_default_str();
  command
      ->add_option("--contacts", planted.contacts,
                   "number of pairs of residues that touch each other")
      ->check(CLI::Range(1, 50'000))
      ->capture_default_str();
  command->add_option("--seed", planted.seed, "random seed")->capture_default_str();
  command->add_flag("--json", options->json,
                    "print one JSON object: path, train_proteins, valid_proteins, contacts");
  command->footer(
      "A line of contacts.tsv has the positions, from 1, of two residues that touch each other. In "
      "9 of\n"
      "10 proteins the second is the partner of the first.\n"
      "\n"
      "Example:\n"
      "  attend data contacts --out family\n"
      "  attend train --data family/train.fasta --valid family/valid.fasta --out model \\\n"
      "    --recipe contacts");
  command->callback([options] { run_contacts(*options); });
}

}  // namespace attend
