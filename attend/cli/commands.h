#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace attend {

// Each function adds one subcommand, its options and its callback. main.cpp calls them.
void add_data_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_average_command(CLI::App& app);
void add_init_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_embed_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_gradients_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_faithfulness_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_score_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_selftest_command(CLI::App& app);
void add_compute_command(CLI::App& app);
void add_recurrence_command(CLI::App& app);
void add_mechanisms_command(CLI::App& app);
void add_completion_command(CLI::App& app);
void add_manual_command(CLI::App& app);

// Subcommands of `data`.
void add_data_text_commands(CLI::App& data);
void add_data_check_command(CLI::App& data);
void add_data_media_commands(CLI::App& data);
void add_data_interactions_command(CLI::App& data);
void add_data_contacts_command(CLI::App& data);
void add_data_sets_command(CLI::App& data);
void add_data_recall_command(CLI::App& data);
void add_data_split_command(CLI::App& data);

// Returns the subcommands that --help lists.
std::vector<const CLI::App*> visible_commands(const CLI::App& app);

}  // namespace attend
