#include "attend/parallel/process_rank.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <string>

#include "tests/support/files.h"

namespace attend {
namespace process_place_test {

using Variables = std::map<std::string, std::string>;

// Replaces the variables of all launchers during its lifetime.
class Launcher {
 public:
  explicit Launcher(const Variables& variables) {
    for (const char* name : names) {
      const char* before = std::getenv(name);
      if (before) before_[name] = before;
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Launcher() {
    for (const char* name : names) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

 private:
  static constexpr const char* names[] = {"RANK",
                                          "WORLD_SIZE",
                                          "OMPI_COMM_WORLD_RANK",
                                          "OMPI_COMM_WORLD_SIZE",
                                          "SLURM_PROCID",
                                          "SLURM_STEP_NUM_TASKS",
                                          "MASTER_ADDR",
                                          "MASTER_PORT",
                                          "ATTEND_MEETING",
                                          "ATTEND_RUN",
                                          "TORCHELASTIC_RUN_ID",
                                          "OMPI_COMM_WORLD_LOCAL_SIZE",
                                          "PMI_RANK",
                                          "PMI_SIZE",
                                          "MPI_LOCALNRANKS"};
  Variables before_;
};

TEST(ProcessRank, IsThatOfOneProcessWhereNoLauncherSpeaks) {
  const Launcher launcher(Variables{{"MASTER_ADDR", "elsewhere"}});
  EXPECT_EQ(rank_of_environment().size, 1);
}

TEST(ProcessRank, TakesTheInnermostLauncher) {
  const Launcher launcher(Variables{{"SLURM_PROCID", "5"},
                                    {"SLURM_STEP_NUM_TASKS", "6"},
                                    {"OMPI_COMM_WORLD_RANK", "1"},
                                    {"OMPI_COMM_WORLD_SIZE", "3"},
                                    {"MASTER_ADDR", "first"},
                                    {"MASTER_PORT", "4000"},
                                    {"TORCHELASTIC_RUN_ID", "run"}});
  const ProcessRank place = rank_of_environment();
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.size, 3);
  EXPECT_EQ(place.address, "first");
  EXPECT_EQ(place.port, 4000);
  EXPECT_EQ(place.run, "run");
}

// The variables of `mpiexec -n 2` of MPICH 4.0 on one machine, within a step of Slurm.
TEST(ProcessRank, TakesMpichAndIntelMpi) {
  Variables variables = {{"PMI_RANK", "1"},
                         {"PMI_SIZE", "2"},
                         {"MPI_LOCALNRANKS", "2"},
                         {"SLURM_PROCID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "1"}};
  {
    const Launcher launcher(variables);
    const ProcessRank place = rank_of_environment();
    EXPECT_EQ(place.rank, 1);
    EXPECT_EQ(place.size, 2);
    EXPECT_EQ(place.address, "127.0.0.1") << "all are on this machine";
  }
  variables["MPI_LOCALNRANKS"] = "1";
  {
    const Launcher launcher(variables);
    EXPECT_THAT(test::error_of(rank_of_environment), testing::HasSubstr("MASTER_ADDR is missing"));
  }
  variables["MASTER_ADDR"] = "first";
  variables["OMPI_COMM_WORLD_RANK"] = "0";
  variables["OMPI_COMM_WORLD_SIZE"] = "3";
  const Launcher launcher(variables);
  EXPECT_EQ(rank_of_environment().size, 3) << "Open MPI's launcher is the inner one";
}

TEST(ProcessRank, AFileTakesThePlaceOfAnAddress) {
  const Launcher launcher(Variables{{"RANK", "1"},
                                    {"WORLD_SIZE", "2"},
                                    {"ATTEND_MEETING", "here"},
                                    {"ATTEND_RUN", "own"},
                                    {"TORCHELASTIC_RUN_ID", "run"}});
  const ProcessRank place = rank_of_environment();
  EXPECT_EQ(place.file, "here");
  EXPECT_EQ(place.run, "own");
}

TEST(ProcessRank, NamesTheVariableThatDoesNotFit) {
  const std::pair<Variables, const char*> cases[] = {
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE is 0"},
      {{{"WORLD_SIZE", "2"}}, "RANK is missing"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK is 2"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "a whole number"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "MASTER_ADDR is missing"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "65535"}},
       "MASTER_PORT is 65535"}};
  for (const auto& [variables, message] : cases) {
    const Launcher launcher(variables);
    EXPECT_THAT(test::error_of(rank_of_environment), testing::HasSubstr(message));
  }
}

}  // namespace process_place_test
}  // namespace attend
