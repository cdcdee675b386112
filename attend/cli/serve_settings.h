#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/base/settings.h"
#include "attend/http/http_server.h"
#include "attend/serve/service.h"

namespace attend {

enum class LogForm { lines, json };
inline EnumNames names_of(LogForm) { return {"lines", "json"}; }

// Settings of `attend serve`.
struct ServeOptions {
  HttpOptions http{.port = 8080};
  ServiceOptions service;
  std::vector<std::string> folders;    // each FOLDER or NAME=FOLDER
  std::string models, hosts, origins;  // separated by commas
  std::string key_file, examples_file;
  LogForm log = LogForm::lines;
  int64_t connections = 512, queue = 256;
  double deadline = 60, stream_deadline = 600, drain = 0;  // seconds

  Settings settings();  // keys serve.*
  HttpOptions::Time drain_time() const;

  // Applies the TOML file `config`, if any, then the environment and the assignments of options,
  // and sets `http` and `service`. Error if a value is out of range or no model is named.
  void read(const std::string& config, const std::vector<std::string>& assignments);
};

}  // namespace attend
