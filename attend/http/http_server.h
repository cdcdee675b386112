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
  std::string address = "127.0.0.1";  // of this machine, as a number
  int64_t port = 0;                   // 0: one that is free
  std::string socket_path = {};       // of a Unix socket, in place of address and port
  // Hosts that requests may be for, besides the address, in small letters: with any port, or only
  // with the port that one has. A Unix socket takes all.
  std::vector<std::string> hosts = {};
  std::vector<std::string> open_paths = {};  // see HttpRules::open_paths
  int listener = -1;  // a socket that listens already, in place of address and socket_path; it is
                      // this server's from then on
  std::vector<std::string> origins = {};  // see HttpRules::origins

  // PEM files: the server's certificate followed by the certificates that signed it, and its key.
  // The server speaks TLS if they are set.
  std::string certificate_file = {}, certificate_key_file = {};

  size_t connections = 512;         // more are told 503
  int64_t body_bytes = 16 << 20;    // of one request
  int64_t all_bodies = 64 << 20;    // of all requests that are not answered yet; more are told 503
  int64_t all_answers = 256 << 20;  // of all answers that clients have not read yet; beyond it an
                                    // answer of over 64 KiB becomes a 503
  int64_t stream_bytes = 1 << 20;   // of an answer in parts, that wait for a slow client

  using Time = std::chrono::milliseconds;
  Time idle_time{20000};     // between two requests of a connection
  Time head_time{10000};     // from a head's first byte to its last
  Time body_time{30000};     // the whole body
  Time answer_time{60000};   // from a request's last byte to its answer's beginning; then 504
  Time stream_time{600000};  // from the beginning of an answer in parts to its end; then it is cut
  Time write_time{20000};    // for 256 KiB of an answer
  Time leave_time{300};      // a client that says it sends no more is waited for so long
  Time drain_time{10000};    // for the answers that are due when the server ends
};

// What became of one request.
struct HttpEvent {
  enum class Kind {
    answered,
    refused,  // by the server: nothing of it reached the handler
    left,     // its client was gone before the answer was
  };
  Kind kind = Kind::answered;
  std::string id, method, target, path;  // empty if the head could not be read
  std::string reason;                    // why it was refused or cut off; one line
  int status = 0;                        // 0: nothing was sent
  int64_t received = 0;                  // bytes of the request's body
  int64_t sent = 0;                      // bytes of the answer, head included
  double seconds = 0;                    // from the request's last byte, or the refusal
};

// An HTTP/1.1 server for unknown clients: one thread takes the requests and gives the answers; the
// handler has others compute them. Every size, number and time is bounded by HttpOptions.
class HttpServer {
 public:
  // Called on the server's thread with each request; must not wait. What it throws is a 500.
  using Handler = std::function<void(HttpRequest, HttpReply)>;
  // Called on the server's thread.
  using Watch = std::function<void(const HttpEvent&)>;
  // Called on the server's thread with each head, before its body is read. A response refuses the
  // request, and nothing of the body is kept.
  using Judge = std::function<std::optional<HttpResponse>(const HttpHead&)>;
  using Signalled = std::function<void(int count)>;

  // Error if it cannot listen. Clients can connect from here on. Without `judge` every head is
  // admitted.
  HttpServer(const HttpOptions& options, Handler handler, Watch watch, Judge judge = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Where it listens: "http://127.0.0.1:8080", or with TLS https, or "unix:PATH".
  std::string url() const;

  // Takes over SIGINT, SIGTERM and, unless the process ignores it, SIGHUP: calls `signalled` with
  // the number of signals so far. A SIGHUP after another signal is not counted: a terminal that
  // closes may send several.
  void take_signals(Signalled signalled);

  // Serves on the calling thread, until drain() or stop() was called and it is done.
  void run();

  // From any thread. Calls `work` on the server's thread after that time.
  void call_after(HttpOptions::Time time, std::function<void()> work);
  // From any thread. No new connection is taken, idle ones are closed; those with a request are
  // answered and closed, within HttpOptions::drain_time.
  void drain();
  // From any thread. Ends at once.
  void stop();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
