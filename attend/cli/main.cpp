#include <cstdio>
#include <exception>

#include "attend/base/error.h"
#include "attend/cli/commands.h"

namespace {

int report(const std::exception& error, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "attend: %s\n", error.what());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Attend: train, decode and explain models of neural attention.", "attend"};
  app.require_subcommand(1);
  attend::add_data_command(app);
  attend::add_train_command(app);
  attend::add_predict_command(app);
  attend::add_evaluate_command(app);
  attend::add_explain_command(app);
  attend::add_inspect_command(app);
  attend::add_doctor_command(app);
  attend::add_compute_command(app);
  attend::add_mechanisms_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    // CLI11 numbers its errors from 100; misuse is 2 here, help and version are 0.
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const attend::Error& error) {
    return report(error, 2);
  } catch (const std::exception& error) {
    return report(error, 1);
  }
  return 0;
}
