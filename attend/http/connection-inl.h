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
#include "attend/http/http_message.h"
#include "attend/http/http_server.h"
#include "attend/http/leavers-inl.h"
#include "attend/http/stream-inl.h"

namespace attend {

class HttpConnection;

// What the connections of a server share. All of it is of the server's thread.
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
  Leavers leavers;
  std::unordered_map<uint64_t, std::shared_ptr<HttpConnection>> connections;
  std::function<void()> closed;  // called when one of them has gone
  uint64_t last_connection = 0, last_exchange = 0;
  std::string request_prefix;                   // of ids, which differ between runs of the program
  std::shared_ptr<ByteBudget> bodies, answers;  // memory that all of them take
  bool drains = false;
};

// A request on its way, between the connection and whoever answers; the replies share it. A reply's
// thread reaches the connection only by posting to the server's, which alone makes and destroys
// connections.
class ConnectionExchange : public HttpExchange,
                           public std::enable_shared_from_this<ConnectionExchange> {
 public:
  // `body_room`: memory of the request, which counts until its last reply is gone.
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

// One client. It reads a request, has it answered, writes the answer and reads the next: while one
// is answered no other is read, so that what a client sends ahead stays with the system.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // `local_host` as read_http_head takes it.
  HttpConnection(HttpSocket socket, HttpShared& shared, uint64_t number, std::string local_host);

  void start();                         // reads the first request, after a handshake of TLS
  void refuse(const HttpRefusal& why);  // says so and ends
  void end_if_idle();                   // where no request is under way
  void client_left(bool entirely);      // `entirely`: it will not read the answer either
  void close(bool at_once = false);     // `at_once`: what the system still holds is dropped

  // What an exchange posts, with its number.
  void begin_answer(uint64_t exchange, const HttpResponse& response, bool is_whole);
  void add_part(uint64_t exchange, const std::string& part);
  void end_answer(uint64_t exchange);
  void give_up_answer(uint64_t exchange);  // nobody will answer, or end the answer

 private:
  enum class Phase { greeting, idle, head, body, waiting, streaming, writing, lingering, closed };

  using Clock = std::chrono::steady_clock;

  // Begins a phase that ends in time, or expire() is called.
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
  Clock::time_point deadline_ = no_deadline;    // of the phase
  Clock::time_point stream_end_ = no_deadline;  // of an answer in parts
  bool is_timed_ = false;                       // the timer waits, for no later time than that

  std::array<char, 8192> chunk_;  // what one read brings
  bool is_reading_ = false, is_ended_by_client_ = false;
  void (HttpConnection::*after_read_)() = nullptr;
  std::string ahead_;  // what arrived and is not taken yet
  HttpHead head_;
  std::optional<ChunkedBody> chunks_;  // decodes the body, if it comes in chunks
  std::string body_;
  BudgetShare body_room_, answer_room_;
  size_t lingered_ = 0;

  std::weak_ptr<HttpExchange> exchange_;
  uint64_t exchange_number_ = 0;
  bool keeps_alive_ = true, has_chunks_ = false, is_ended_ = true, is_writing_ = false;
  std::string out_, next_;                            // what is written now, and what follows it
  size_t written_ = 0;                                // bytes of out_
  int64_t out_part_bytes_ = 0, next_part_bytes_ = 0;  // in them, of parts, without framing
  HttpEvent event_;
  Clock::time_point begun_;
};

}  // namespace attend
