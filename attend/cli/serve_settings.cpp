#include "attend/cli/serve_settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/parse_number.h"
#include "attend/base/trimmed.h"
#include "attend/serve/request_fields.h"
#include "attend/serve/routes.h"

namespace attend {
namespace {

// First descriptor that systemd passes (sd_listen_fds).
constexpr int first_listener = 3;

HttpOptions::Time milliseconds(double seconds) {
  return HttpOptions::Time(static_cast<int64_t>(seconds * 1000));
}

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// Reads the key, the first line of the file.
std::string read_key(const std::string& path) {
  std::string key = read_file(path, 4096);
  key.resize(std::min(key.size(), key.find_first_of("\r\n")));
  if (key.empty() || !is_printable(key))
    fail("{}: its first line must be a key of printable ASCII without blanks", path);
  return key;
}

// Reads the texts before the TABs of the file's first lines.
std::vector<std::string> read_page_examples(const std::string& path) {
  constexpr size_t maximum = 12;
  std::vector<std::string> texts;
  std::istringstream lines(read_file(path));
  for (std::string line; texts.size() < maximum && std::getline(lines, line);) {
    line.resize(std::min(line.size(), line.find_first_of("\t\r")));
    if (!line.empty() && std::find(texts.begin(), texts.end(), line) == texts.end())
      texts.push_back(line);
  }
  if (texts.empty()) fail("{}: holds no text to offer as an example", path);
  return texts;
}

// Splits a list at commas.
std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (const auto part = trimmed(text.substr(0, end)); !part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::string> read_origins(const std::string& text) {
  std::vector<std::string> origins =
      listed(boost::algorithm::to_lower_copy(text, std::locale::classic()));
  for (const std::string& origin : origins) {
    const size_t host = origin.find("://");
    if (!is_printable(origin) || host == std::string::npos || host + 3 == origin.size() ||
        origin.find('/', host + 3) != std::string::npos)
      fail("serve.cors_origin {}: it must be a site, such as https://example.org, without a path",
           in_quotes(origin));
  }
  return origins;
}

// Whether the text is a name or address in the form of a Host field: "attend.example", "[::1]",
// with an optional port.
bool is_host(std::string_view text) {
  std::string_view name = text;
  if (const size_t colon = text.rfind(':');
      colon != std::string_view::npos && text.find(']', colon) == std::string_view::npos) {
    const auto port = parse_number<uint16_t>(text.substr(colon + 1));
    if (!port || *port == 0) return false;
    name = text.substr(0, colon);
  }
  const auto has_only = [](std::string_view all, std::string_view allowed) {
    return !all.empty() && all.find_first_not_of(allowed) == std::string_view::npos;
  };
  if (name.starts_with('[') && name.ends_with(']'))
    return has_only(name.substr(1, name.size() - 2), "0123456789abcdef:.");
  return has_only(name, "abcdefghijklmnopqrstuvwxyz0123456789-._");
}

std::vector<std::string> read_hosts(const std::string& text) {
  std::vector<std::string> hosts =
      listed(boost::algorithm::to_lower_copy(text, std::locale::classic()));
  for (const std::string& host : hosts)
    if (!is_host(host))
      fail(
          "serve.host {}: is not a valid host; give a name or an address, such as attend.example "
          "or [::1], with or without a port",
          in_quotes(host));
  return hosts;
}

// The name of "runs/words/" is "words"; a link keeps its own name.
std::string folder_name(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  return path.filename().string();
}

// Parses FOLDER or NAME=FOLDER.
ModelFolder read_model_folder(const std::string& text) {
  const size_t equals = text.find('=');
  std::error_code error;
  // The name of an existing folder may contain "=".
  if (equals == std::string::npos || std::filesystem::exists(text, error))
    return {folder_name(text), text};
  ModelFolder named{text.substr(0, equals), text.substr(equals + 1)};
  if (named.name.empty() || !is_printable(named.name) || named.folder.empty())
    fail("model {}: it must be a folder or NAME=FOLDER, the name without blanks", in_quotes(text));
  return named;
}

// The listening socket that systemd passed to this process; -1 if there is none.
int inherited_listener() {
  const char *process = std::getenv("LISTEN_PID"), *count = std::getenv("LISTEN_FDS");
  if (process == nullptr || count == nullptr ||
      parse_number<int64_t>(process) != std::optional<int64_t>(getpid()))
    return -1;
  if (parse_number<int64_t>(count) != std::optional<int64_t>(1))
    fail("LISTEN_FDS is {}, and the server listens at one socket; name one in the unit", count);
  fcntl(first_listener, F_SETFD, FD_CLOEXEC);
  return first_listener;
}

}  // namespace

Settings ServeOptions::settings() {
  return {
      {"serve.models", &models,
       "model folders, or NAME=FOLDER, separated by commas; unused if arguments name models"},
      {"serve.address", &http.address, "numeric address to listen at"},
      {"serve.port", &http.port, "port; 0: a free port, which is printed", 0, 65535},
      {.key = "serve.socket",
       .value = &http.socket_path,
       .help = "listen at a Unix socket of this path instead"},
      {"serve.host", &hosts,
       "accepted Host names besides the address and localhost, separated by commas; without a "
       "port, any port is accepted"},
      {"serve.cors_origin", &origins,
       "origins of pages that may send requests, as https://example.org, separated by commas"},
      {.key = "serve.certificate",
       .value = &http.certificate_file,
       .help = "use TLS: PEM file with the certificate and its chain",
       .is_file = true},
      {.key = "serve.certificate_key",
       .value = &http.certificate_key_file,
       .help = "PEM file with the private key",
       .is_file = true},
      {.key = "serve.key_file",
       .value = &key_file,
       .help =
           "file with a key in its first line, which clients must send as Authorization: Bearer",
       .is_file = true},
      {.key = "serve.examples",
       .value = &examples_file,
       .help = "file with example texts for the page: its first lines, or their sources if it is a "
               "TSV file",
       .is_file = true},
      {"serve.connections", &connections, "maximum number of open connections; more get 503", 1,
       100000},
      {"serve.body_bytes", &http.body_bytes,
       "maximum size of a request body; larger ones get 413. All bodies together have four times "
       "that, at least 64 MiB",
       1024, 1 << 30},
      {"serve.queue", &queue, "maximum number of waiting requests per model; more get 429", 1,
       100000},
      {"serve.deadline", &deadline, "maximum seconds for an answer; then 504", 0.001, 3600},
      {"serve.stream_deadline", &stream_deadline,
       "maximum seconds for a streamed answer; then it ends with an error", 0.001, 86400},
      {"serve.drain_seconds", &drain,
       "seconds of service after a stop signal, while /ready reports 503", 0, 3600},
      {"serve.threads", &service.model.threads,
       "number of threads per model; 0: one per core; answers do not depend on it", 0, 1024},
      {"serve.weights", &service.model.weights,
       "type of the weights; bfloat16 and int8 are faster and less exact"},
      {"serve.strict", &service.model.strict,
       "refuse texts that are too long for the model instead of cutting them"},
      {"serve.log", &log, "format of the request log on standard error: lines, or JSON objects"},
  };
}

HttpOptions::Time ServeOptions::drain_time() const { return milliseconds(drain); }

void ServeOptions::read(const std::string& config, const std::vector<std::string>& assignments) {
  const Settings all = settings();
  std::vector<std::string> keys;
  for (const Setting& setting : all) keys.push_back(setting.key);
  check_environment(keys);
  if (!config.empty()) TomlFile(config).read(all);
  read_environment(all);
  for (const std::string& assignment : assignments) assign(all, assignment);
  if (folders.empty()) folders = listed(models);
  if (folders.empty()) fail("no model is named; give folders of models, or set serve.models");
  for (const std::string& folder : folders) service.folders.push_back(read_model_folder(folder));
  http.hosts = read_hosts(hosts);
  http.open_paths = open_paths();
  http.error = [](int status, const std::string& message) {
    return openai_error(RequestError(status, message));
  };
  http.origins = read_origins(origins);
  http.listener = inherited_listener();
  http.connections = static_cast<size_t>(connections);
  http.all_bodies = std::max(http.all_bodies, 4 * http.body_bytes);
  http.answer_time = milliseconds(deadline);
  // The connection is cut only if the answer does not end by itself.
  http.stream_time = milliseconds(stream_deadline + 5);
  service.stream_time = milliseconds(stream_deadline);
  service.waits_for_models = http.listener >= 0;
  service.queue = static_cast<size_t>(queue);
  service.logs_json = log == LogForm::json;
  if (!key_file.empty()) service.key = read_key(key_file);
  if (!examples_file.empty()) service.examples = read_page_examples(examples_file);
}

}  // namespace attend
