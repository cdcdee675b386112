#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "attend/base/error.h"
#include "attend/base/memory.h"
#include "attend/base/settings.h"
#include "attend/cli/commands.h"
#include "attend/machine/blas.h"

namespace {

int report(std::string_view problem, int status) {
  std::fflush(stdout);
  // LibTorch appends a stack trace to its messages. The exit code is valid even if the message
  // cannot be written.
  std::fputs(fmt::format("attend: {}\n", problem.substr(0, problem.find('\n'))).c_str(), stderr);
  return status;
}

// CLI11's message has two lines and does not name an unknown command.
std::string misuse(const CLI::App* app, const CLI::Error& error) {
  std::string problem = error.what();
  std::string command = app->get_name();
  for (const CLI::App* called = app; !called->get_subcommands().empty();) {
    called = called->get_subcommands()[0];
    command += ' ' + called->get_name();
  }
  const std::vector<std::string> rest = app->remaining();
  if (!rest.empty() && !rest[0].starts_with('-')) {
    std::vector<std::string> names;
    for (const CLI::App* each : attend::visible_commands(*app)) names.push_back(each->get_name());
    const std::string meant = attend::nearest(rest[0], names);
    problem = fmt::format("unknown command {}{}", attend::in_quotes(rest[0]),
                          meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
    command = app->get_name();
  }
  std::replace(problem.begin(), problem.end(), '\n', ' ');
  return fmt::format("attend: {} (see {} --help)\n", problem, command);
}

}  // namespace

int main(int argc, char** argv) {
  attend::choose_blas_kernels(argv);
  // Exceeding the file size limit is then a write error, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  attend::keep_memory();
  CLI::App app{"Train, run and explain models with neural attention", "attend"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "attend " ATTEND_VERSION, "Print the version and stop");
  app.failure_message(misuse);
  attend::add_data_command(app);
  attend::add_init_command(app);
  attend::add_train_command(app);
  attend::add_average_command(app);
  attend::add_import_command(app);
  attend::add_export_command(app);
  attend::add_predict_command(app);
  attend::add_embed_command(app);
  attend::add_evaluate_command(app);
  attend::add_compare_command(app);
  attend::add_gradients_command(app);
  attend::add_explain_command(app);
  attend::add_faithfulness_command(app);
  attend::add_inspect_command(app);
  attend::add_doctor_command(app);
  attend::add_score_command(app);
  attend::add_serve_command(app);
  attend::add_selftest_command(app);
  attend::add_compute_command(app);
  attend::add_recurrence_command(app);
  attend::add_mechanisms_command(app);
  attend::add_completion_command(app);
  attend::add_manual_command(app);
  // Commands inherit the footer that is set when they are added.
  app.footer("Exit codes: 0 done, 1 failure, 2 misuse or bad input.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    // CLI11 numbers its errors from 100; here misuse is 2, help and version are 0.
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const attend::Error& error) {
    return report(error.what(), 2);
  } catch (const std::filesystem::filesystem_error& error) {
    // E.g. a loop of links, a folder without permission, or a name that is too long.
    return report(fmt::format("{}: {}; check the path and its permissions", error.path1().string(),
                              error.code().message()),
                  2);
  } catch (const std::exception& error) {
    const bool output = std::ferror(stdout) != 0;
    return report(output ? "standard output cannot be written" : error.what(), 1);
  }
  return std::fflush(stdout) == 0 ? 0 : report("standard output cannot be written", 1);
}
