#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "attend/http/byte_budget-inl.h"
#include "attend/http/chunked_body.h"
#include "attend/http/disconnect_watcher-inl.h"
#include "attend/http/http_message.h"
#include "attend/http/http_server.h"
#include "attend/http/stream-inl.h"

namespace attend {

class HttpConnection;

// State shared by a server's connections. Used only on the server's thread.
struct HttpShared {
  HttpShared(const HttpOptions& chosen, HttpServer::Handler handles, HttpServer::Watch watches,
             HttpServer::Judge judges)
      : options(chosen),
        handler(std::move(handles)),
        watch(std::move(watches)),
        judge(std::move(judges)),
        leavers(context),
        bodies(std::make_shared<ByteBudget>(options.all_bodies)),
        answers(std::make_shared<ByteBudget>(options.all_answers)) {}

  HttpOptions options;
  HttpRules rules;
  HttpServer::Handler handler;
  HttpServer::Watch watch;
  HttpServer::Judge judge;
  boost::asio::io_context context{1};
  std::optional<boost::asio::ssl::context> tls;
  DisconnectWatcher leavers;
  std::unordered_map<uint64_t, std::shared_ptr<HttpConnection>> connections;
  std::function<void()> closed;  // called after a connection was removed
  uint64_t last_connection = 0, last_exchange = 0;
  std::string request_prefix;  // prefix of request ids; differs between runs of the program
  std::shared_ptr<ByteBudget> bodies, answers;  // memory of all connections
  bool drains = false;
};

// A request between its connection and the thread that answers; shared by its replies. Other
// threads only post to the server's thread, which creates and destroys connections.
class ConnectionExchange : public HttpExchange,
                           public std::enable_shared_from_this<ConnectionExchange> {
 public:
  // `body_room`: memory of the request, counted until its last reply is destroyed.
  ConnectionExchange(boost::asio::io_context& context, std::weak_ptr<HttpConnection> connection,
                     uint64_t number, BudgetShare body_room)
      : context_(context),
        connection_(std::move(connection)),
        number_(number),
        body_room_(std::move(body_room)) {}
  ~ConnectionExchange() override;
  ConnectionExchange(const ConnectionExchange&) = delete;
  ConnectionExchange& operator=(const ConnectionExchange&) = delete;

  void send(HttpResponse response, bool is_whole) override;
  void add(std::string part) override;
  void end() override;

 private:
  boost::asio::io_context& context_;
  std::weak_ptr<HttpConnection> connection_;
  uint64_t number_;
  BudgetShare body_room_;
  std::atomic<bool> is_begun_ = false, is_ended_ = false;
};

// One client connection. It reads a request, waits for the answer, writes it and reads the next.
// Later requests stay in the system's buffer until the answer is written.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // `local_host`: as for read_http_head().
  HttpConnection(HttpSocket socket, HttpShared& shared, uint64_t number, std::string local_host);

  void start();                         // reads the first request, after the TLS handshake
  void refuse(const HttpRefusal& why);  // sends the refusal and closes
  void end_if_idle();                   // closes if no request is in progress
  void client_left(bool entirely);      // `entirely`: also closed for reading
  void close(bool at_once = false);     // `at_once`: drops unsent data

  // Posted by an exchange, with its number.
  void begin_answer(uint64_t exchange, const HttpResponse& response, bool is_whole);
  void add_part(uint64_t exchange, const std::string& part);
  void end_answer(uint64_t exchange);
  void give_up_answer(uint64_t exchange);  // no reply is left to send or end the answer

 private:
  enum class Phase { greeting, idle, head, body, waiting, streaming, writing, lingering, closed };

  using Clock = std::chrono::steady_clock;

  // Enters a phase with a time limit; expire() is called after it.
  void enter(Phase phase, HttpOptions::Time time);
  void set_deadline(Clock::time_point time);
  void wait_for_deadline();
  void expire();

  void read(void (HttpConnection::*next)());
  void read_head();
  void note_head(HttpHead head);
  void take_head(HttpHead head);
  bool is_judged();
  void invite_body();
  void read_body();
  bool take_body();
  bool take_chunks();
  bool take_bytes(std::string_view bytes);
  bool make_room(size_t size);
  void dispatch();
  void linger();

  void answer(const HttpResponse& response);
  void put_head(const HttpResponse& response, bool has_length);
  void put_part(const std::string& part);
  bool has_answer_room(size_t size);
  void write();
  void take_next();
  void finish_answer();
  void abandon();
  void tell(HttpEvent::Kind kind);

  HttpShared& shared_;
  HttpStream stream_;
  boost::asio::steady_timer timer_, leave_timer_;
  uint64_t number_;
  std::string local_host_;
  Phase phase_ = Phase::idle;
  static constexpr auto no_deadline = Clock::time_point::max();
  Clock::time_point deadline_ = no_deadline;    // deadline of the phase
  Clock::time_point stream_end_ = no_deadline;  // deadline of an answer in parts
  bool is_timed_ = false;  // the timer runs and expires no later than deadline_

  std::array<char, 8192> chunk_;  // buffer of one read
  bool is_reading_ = false, is_ended_by_client_ = false;
  void (HttpConnection::*after_read_)() = nullptr;
  std::string ahead_;  // received, not yet processed
  HttpHead head_;
  std::optional<ChunkedBody> chunks_;  // decoder of a chunked body
  std::string body_;
  BudgetShare body_room_, answer_room_;
  size_t lingered_ = 0;

  std::weak_ptr<HttpExchange> exchange_;
  uint64_t exchange_number_ = 0;
  bool keeps_alive_ = true, has_chunks_ = false, is_ended_ = true, is_writing_ = false;
  std::string out_, next_;                            // data being written, and data after it
  size_t written_ = 0;                                // bytes written of out_
  int64_t out_part_bytes_ = 0, next_part_bytes_ = 0;  // bytes of parts in them, without framing
  HttpEvent event_;
  Clock::time_point begun_;
};

}  // namespace attend
