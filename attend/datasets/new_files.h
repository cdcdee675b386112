#pragma once

#include <string>
#include <vector>

namespace attend {

struct NewFile {
  std::string path, bytes;
};

// Writes files as write_file(). Error, before any is written, if a file exists and has other bytes.
// So a command can be repeated, and replaces no data of the user.
void write_new_files(const std::vector<NewFile>& files);

// Files of one folder that are written together.
class NewFolder {
 public:
  explicit NewFolder(std::string folder) : folder_(std::move(folder)) {}

  // Adds a file, and returns its path.
  std::string add(const std::string& name, std::string bytes);
  // Creates the folder if it is missing, removes what a killed command left, and writes the files.
  // Error as write_new_files().
  void write() const;

 private:
  std::string folder_;
  std::vector<NewFile> files_;
};

}  // namespace attend
