#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "attend/base/parse_number.h"
#include "attend/http/http_server.h"

namespace attend::test {

// A server on its own thread, stopped at the end of the test.
class RunningServer {
 public:
  // `watch` is called with each event before next_event() returns it.
  explicit RunningServer(
      const HttpOptions& options, HttpServer::Handler handler,
      HttpServer::Watch watch = [](const HttpEvent&) {}, HttpServer::Judge judge = {})
      : server_(
            options, std::move(handler),
            [this, watch = std::move(watch)](const HttpEvent& event) {
              watch(event);
              note(event);
            },
            std::move(judge)),
        thread_([this] { server_.run(); }) {}
  ~RunningServer() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  HttpServer& operator*() { return server_; }
  HttpServer* operator->() { return &server_; }
  uint16_t port() const {
    const std::string url = server_.url();
    return parse_number<uint16_t>(url.substr(url.rfind(':') + 1)).value();
  }
  void wait_for_end() { thread_.join(); }

  // Waits for the next event and returns it.
  HttpEvent next_event() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !events_.empty(); });
    const HttpEvent event = events_.front();
    events_.erase(events_.begin());
    return event;
  }

 private:
  void note(const HttpEvent& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HttpEvent> events_;
  HttpServer server_;
  std::thread thread_;
};

// A connection on which the test sends raw bytes.
class Client {
 public:
  explicit Client(uint16_t port, int receive_buffer = 0, in_addr_t server = INADDR_LOOPBACK)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(server);
    connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  explicit Client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends all bytes; stops if the server no longer reads.
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // The next answer, head and body; incomplete if the server ends the connection.
  std::string answer() {
    while (ahead_.find("\r\n\r\n") == std::string::npos && read_more()) {
    }
    const size_t head = std::min(ahead_.find("\r\n\r\n"), ahead_.size());
    static constexpr std::string_view name = "Content-Length: ";
    const size_t length = std::min(ahead_.find(name), ahead_.size());
    size_t size = std::min(head + 4, ahead_.size());
    if (length < head) {
      const size_t first = length + name.size();
      size += parse_number<size_t>(ahead_.substr(first, ahead_.find('\r', first) - first)).value();
    }
    while (ahead_.size() < size && read_more()) {
    }
    std::string result = ahead_.substr(0, size);
    ahead_.erase(0, size);
    return result;
  }
  int status() {
    const std::string text = answer();
    return text.size() < 12 ? 0 : parse_number<int>(text.substr(9, 3)).value_or(0);
  }

  // Reads until the server ends the connection.
  std::string rest() {
    while (read_more()) {
    }
    return std::exchange(ahead_, "");
  }
  bool was_reset() const { return was_reset_; }
  int descriptor() const { return socket_; }

  void end_sending() { shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void reset() {
    const linger at_once{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }

 private:
  void connect_to(const sockaddr* address, socklen_t size) {
    if (connect(socket_, address, size) != 0) throw std::runtime_error(std::strerror(errno));
  }

  bool read_more() {
    char bytes[65536];
    const ssize_t size = recv(socket_, bytes, sizeof bytes, 0);
    if (size < 0) was_reset_ = true;
    if (size > 0) ahead_.append(bytes, static_cast<size_t>(size));
    return size > 0;
  }

  int socket_;
  std::string ahead_;
  bool was_reset_ = false;
};

inline std::string get(uint16_t port, const std::string& path = "/",
                       const std::string& lines = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost:{}\r\n{}\r\n", path, port, lines);
}

inline std::string post(uint16_t port, size_t length, const std::string& lines = "") {
  return fmt::format(
      "POST / HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n{}\r\n",
      port, length, lines);
}

inline void echo(const HttpRequest& request, const HttpReply& reply) {
  reply.send({.body = request.head.target + request.body});
}

// Keeps the replies for the test to answer; requests to /now are answered at once.
class Holder {
 public:
  HttpServer::Handler handler() {
    return [this](const HttpRequest& request, const HttpReply& reply) {
      if (request.head.path == "/now") return reply.send({.body = "now"});
      const std::lock_guard lock(mutex_);
      replies_.push_back(reply);
      changed_.notify_all();
    };
  }
  HttpReply next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !replies_.empty(); });
    HttpReply reply = std::move(replies_.front());
    replies_.erase(replies_.begin());
    return reply;
  }
  static void wait_until_abandoned(const HttpReply& reply) {
    while (!reply.is_abandoned()) std::this_thread::yield();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HttpReply> replies_;
};

}  // namespace attend::test
