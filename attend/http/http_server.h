#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attend/http/http_message.h"

namespace attend {

struct HttpOptions {
  std::string address = "127.0.0.1";  // numeric address of this machine
  int64_t port = 0;                   // 0: a free port
  std::string socket_path = {};       // Unix socket, instead of address and port
  // Accepted hosts besides the address, in lower case. A name without a port matches any port. A
  // Unix socket accepts all hosts.
  std::vector<std::string> hosts = {};
  std::vector<std::string> open_paths = {};  // see HttpRules::open_paths
  int listener = -1;  // listening socket, instead of address and socket_path; owned by the server
  std::vector<std::string> origins = {};  // see HttpRules::origins
  // Formats the errors that the server itself sends.
  HttpResponse (*error)(int status, const std::string& message) = http_error;

  // PEM files: the certificate chain, with the server's certificate first, and its key. If set, the
  // server uses TLS.
  std::string certificate_file = {}, certificate_key_file = {};

  size_t connections = 512;         // maximum; more get 503
  int64_t body_bytes = 16 << 20;    // per request
  int64_t all_bodies = 64 << 20;    // for all unanswered requests; more get 503
  int64_t all_answers = 256 << 20;  // for all unread answers; then answers over 64 KiB become 503
  int64_t stream_bytes = 1 << 20;   // waiting for a slow client, per answer in parts

  using Time = std::chrono::milliseconds;
  Time idle_time{20000};     // between two requests of a connection
  Time head_time{10000};     // from the first to the last byte of a head
  Time body_time{30000};     // for a whole body
  Time answer_time{60000};   // from a request's last byte to the start of its answer; then 504
  Time stream_time{600000};  // from the start to the end of an answer in parts; then it is cut
  Time write_time{20000};    // per 256 KiB of an answer
  Time leave_time{300};      // after a client shut down its sending side
  Time drain_time{10000};    // for pending answers at shutdown
};

// Outcome of one request.
struct HttpEvent {
  enum class Kind {
    answered,
    refused,  // by the server, before the handler
    left,     // the client disconnected before the end of the answer
  };
  Kind kind = Kind::answered;
  std::string id, method, target, path;  // empty if the head could not be read
  std::string reason;                    // reason of a refusal or abort; one line
  int status = 0;                        // 0: nothing was sent
  int64_t received = 0;                  // bytes of the request's body
  int64_t sent = 0;                      // bytes of the answer, with its head
  double seconds = 0;                    // from the request's last byte, or from the refusal
};

// HTTP/1.1 server for untrusted clients. One thread reads requests and writes answers; the handler
// passes the computation to other threads. HttpOptions bounds every size, number and time.
class HttpServer {
 public:
  // Called on the server's thread with each request; must not block. Exceptions become a 500.
  using Handler = std::function<void(HttpRequest, HttpReply)>;
  // Called on the server's thread.
  using Watch = std::function<void(const HttpEvent&)>;
  // Called on the server's thread with each head, before the body is read. A response refuses the
  // request and drops its body.
  using Judge = std::function<std::optional<HttpResponse>(const HttpHead&)>;
  using Signalled = std::function<void(int count)>;

  // Listens, and accepts connections from then on. Error if it cannot listen. Without `judge` every
  // head is accepted.
  HttpServer(const HttpOptions& options, Handler handler, Watch watch, Judge judge = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Address of the server: "http://127.0.0.1:8080", with TLS "https://..", or "unix:PATH".
  std::string url() const;

  // Handles SIGINT, SIGTERM and, unless the process ignores it, SIGHUP: calls `signalled` with the
  // number of signals so far. A SIGHUP after another signal is not counted, because a closing
  // terminal may send several.
  void take_signals(Signalled signalled);

  // Serves on the calling thread until drain() has finished or stop() was called.
  void run();

  // Calls `work` on the server's thread after that time. Thread-safe.
  void call_after(HttpOptions::Time time, std::function<void()> work);
  // Accepts no more connections, closes idle ones, and closes the others after their answers,
  // within HttpOptions::drain_time. Thread-safe.
  void drain();
  // Ends at once. Thread-safe.
  void stop();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
