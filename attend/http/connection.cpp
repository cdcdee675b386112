#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/ssl/error.hpp>
#include <exception>
#include <string_view>
#include <utility>

#include "attend/http/connection-inl.h"

namespace attend {
namespace {

using boost::system::error_code;

// Bytes that are read and dropped after a refused request. Otherwise the system would reset the
// connection before the client reads the refusal.
constexpr size_t lingering_bytes = 256 << 20;
constexpr HttpOptions::Time lingering_time{2000};
constexpr int64_t least_body_room = 16384;

// Answers a CORS preflight of a permitted site.
HttpResponse permission(const HttpHead& head) {
  const std::string fields =
      head.asked_fields.empty() ? "Authorization, Content-Type, X-Request-Id" : head.asked_fields;
  return {.type = "text/plain",
          .fields = {{"Access-Control-Allow-Methods", "GET, POST"},
                     {"Access-Control-Allow-Headers", fields},
                     {"Access-Control-Max-Age", "600"}}};
}

double seconds(HttpOptions::Time time) { return static_cast<double>(time.count()) / 1e3; }

}  // namespace

HttpConnection::HttpConnection(HttpSocket socket, HttpShared& shared, uint64_t number,
                               std::string local_host)
    : shared_(shared),
      stream_(std::move(socket), shared.tls ? &*shared.tls : nullptr),
      timer_(shared.context),
      leave_timer_(shared.context),
      number_(number),
      local_host_(std::move(local_host)),
      body_room_(shared.bodies),
      answer_room_(shared.answers) {}

void HttpConnection::start() {
  if (stream_.has_tls()) {
    enter(Phase::greeting, shared_.options.head_time);
    return stream_.greet([self = shared_from_this()](const error_code& error) {
      if (self->phase_ == Phase::closed) return;
      if (error) return self->close();
      self->enter(Phase::idle, self->shared_.options.idle_time);
      self->read_head();
    });
  }
  enter(Phase::idle, shared_.options.idle_time);
  read_head();
}

void HttpConnection::enter(Phase phase, HttpOptions::Time time) {
  phase_ = phase;
  set_deadline(Clock::now() + time);
}

void HttpConnection::set_deadline(Clock::time_point time) {
  deadline_ = phase_ == Phase::streaming ? std::min(time, stream_end_) : time;
  // A timer that expires early is restarted: this costs less than moving it for each of a request's
  // five phases.
  if (!is_timed_ || deadline_ < timer_.expiry()) wait_for_deadline();
}

void HttpConnection::wait_for_deadline() {
  is_timed_ = deadline_ != no_deadline;
  if (!is_timed_) return;
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->phase_ == Phase::closed) return;
    self->is_timed_ = false;
    if (Clock::now() < self->deadline_) return self->wait_for_deadline();
    self->expire();
  });
}

void HttpConnection::expire() {
  const HttpOptions& options = shared_.options;
  switch (phase_) {
    case Phase::head:
      return refuse({408, fmt::format("the head of the request took over {} s; send it at once",
                                      seconds(options.head_time))});
    case Phase::body:
      return refuse({408, fmt::format("the body of the request took over {} s; send it faster",
                                      seconds(options.body_time))});
    case Phase::waiting: {
      abandon();
      HttpResponse late = shared_.options.error(
          504, fmt::format("the answer took over {} s; ask for less, or later",
                           seconds(options.answer_time)));
      late.fields = {{"X-Should-Retry", "false"}};
      return answer(late);
    }
    case Phase::streaming:
    case Phase::writing:
      event_.reason =
          phase_ == Phase::streaming && Clock::now() >= stream_end_
              ? fmt::format("the answer in parts took over {} s", seconds(options.stream_time))
              : "the client reads the answer too slowly";
      return client_left(true);
    default:
      return close();
  }
}

void HttpConnection::read(void (HttpConnection::*next)()) {
  after_read_ = next;
  // A read may still be pending if a deadline caused the refusal.
  if (std::exchange(is_reading_, true)) return;
  stream_.read(boost::asio::buffer(chunk_), [self = shared_from_this()](const error_code& error,
                                                                        size_t size) {
    self->is_reading_ = false;
    if (self->phase_ == Phase::closed) return;
    if (error == boost::asio::error::eof || error == boost::asio::ssl::error::stream_truncated)
      self->is_ended_by_client_ = true;
    else if (error)
      return self->close();
    if (self->phase_ == Phase::lingering)
      self->lingered_ += size;
    else
      self->ahead_.append(self->chunk_.data(), size);
    ((*self).*self->after_read_)();
  });
}

void HttpConnection::read_head() {
  // While a refusal is written, nothing is read.
  if (phase_ != Phase::idle && phase_ != Phase::head) return;
  HttpHeadReading reading = read_http_head(ahead_, shared_.rules, local_host_);
  if (auto* refusal = std::get_if<HttpRefusal>(&reading)) {
    if (!refusal->head.method.empty()) note_head(std::move(refusal->head));
    return refuse(*refusal);
  }
  if (auto* head = std::get_if<HttpHead>(&reading)) return take_head(std::move(*head));
  if (is_ended_by_client_) {
    if (ahead_.empty()) return close();
    return refuse({400, "the request ended in its head"});
  }
  if (ahead_.empty() && shared_.drains) return linger();
  if (!ahead_.empty() && phase_ == Phase::idle) enter(Phase::head, shared_.options.head_time);
  read(&HttpConnection::read_head);
}

void HttpConnection::note_head(HttpHead head) {
  head_ = std::move(head);
  exchange_number_ = ++shared_.last_exchange;
  event_.id = head_.request_id.empty()
                  ? fmt::format("{}-{}", shared_.request_prefix, exchange_number_)
                  : head_.request_id;
  event_.method = head_.method;
  event_.target = head_.target;
  event_.path = head_.path;
}

void HttpConnection::take_head(HttpHead head) {
  ahead_.erase(0, head.size);
  note_head(std::move(head));
  keeps_alive_ = head_.keeps_alive;
  if (is_judged()) return;
  if (head_.lacks_length)
    return refuse({411, "a POST must give the length of its body; send a Content-Length"});
  if (head_.has_chunks) chunks_.emplace(shared_.options.body_bytes);
  enter(Phase::body, shared_.options.body_time);
  if (!head_.awaits_continue || !ahead_.empty()) return read_body();
  invite_body();
}

// Whether the judge refused the request.
bool HttpConnection::is_judged() {
  if (!shared_.judge || head_.asks_permission) return false;
  std::optional<HttpResponse> refusal;
  try {
    refusal = shared_.judge(head_);
  } catch (const std::exception& error) {
    refusal = shared_.options.error(500, error.what());
  }
  if (!refusal) return false;
  begun_ = Clock::now();
  // The next request can be read only if the end of this one is known and has arrived.
  const auto length = static_cast<size_t>(head_.content_length);
  if (!head_.has_chunks && !head_.lacks_length && length <= ahead_.size())
    ahead_.erase(0, length);
  else
    keeps_alive_ = false;
  answer(*refusal);
  return true;
}

void HttpConnection::invite_body() {
  static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  is_writing_ = true;
  stream_.write(boost::asio::buffer(go_on),
                [self = shared_from_this()](const error_code& error, size_t) {
                  self->is_writing_ = false;
                  if (self->phase_ == Phase::closed) return;
                  if (error) return self->close();
                  if (self->phase_ == Phase::body) return self->read_body();
                  // The body timed out meanwhile; sends the refusal.
                  self->write();
                });
}

void HttpConnection::read_body() {
  if (phase_ != Phase::body) return;
  if (!(head_.has_chunks ? take_chunks() : take_body())) return;
  const bool is_whole = head_.has_chunks
                            ? chunks_->is_done()
                            : body_.size() == static_cast<size_t>(head_.content_length);
  if (is_whole) return dispatch();
  if (is_ended_by_client_) return refuse({400, "the request ended in its body"});
  read(&HttpConnection::read_body);
}

// Moves received bytes of the body to body_. Returns false if the request was refused.
bool HttpConnection::take_body() {
  const auto left = static_cast<size_t>(head_.content_length) - body_.size();
  const std::string_view bytes = std::string_view(ahead_).substr(0, left);
  if (!take_bytes(bytes)) return false;
  ahead_.erase(0, bytes.size());
  return true;
}

// As take_body(), for a chunked body.
bool HttpConnection::take_chunks() {
  std::string_view arrived = ahead_;
  while (!chunks_->is_done()) {
    const ChunkedBody::Reading reading = chunks_->read(arrived);
    if (const auto* refusal = std::get_if<HttpRefusal>(&reading)) {
      refuse(*refusal);
      return false;
    }
    const auto* piece = std::get_if<ChunkedBody::Piece>(&reading);
    if (piece == nullptr) break;
    if (!take_bytes(piece->data)) return false;
    arrived.remove_prefix(piece->size);
  }
  ahead_.erase(0, ahead_.size() - arrived.size());
  return true;
}

// Appends to body_. Returns false if the request was refused.
bool HttpConnection::take_bytes(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (!make_room(body_.size() + bytes.size())) {
    refuse({503,
            fmt::format("the bodies of all requests take over {} bytes; ask later",
                        shared_.options.all_bodies),
            {{"Retry-After", "1"}}});
    return false;
  }
  body_.append(bytes);
  return true;
}

// Memory grows with the received bytes, not with the announced length. The head counts too, because
// many small requests may wait.
bool HttpConnection::make_room(size_t size) {
  const auto head = static_cast<int64_t>(head_.size), wanted = static_cast<int64_t>(size);
  const int64_t room = std::max<int64_t>(body_room_.bytes() - head, 0);
  if (wanted <= room) return true;
  const int64_t length = head_.has_chunks ? shared_.options.body_bytes : head_.content_length;
  const int64_t grown = std::min(length, std::max({wanted, 2 * room, least_body_room}));
  if (!body_room_.resize(head + grown)) return false;
  body_.reserve(static_cast<size_t>(grown));
  return true;
}

void HttpConnection::dispatch() {
  enter(Phase::waiting, shared_.options.answer_time);
  begun_ = std::chrono::steady_clock::now();
  event_.received = static_cast<int64_t>(body_.size());
  chunks_.reset();
  const auto exchange =
      std::make_shared<ConnectionExchange>(shared_.context, weak_from_this(), exchange_number_,
                                           std::exchange(body_room_, BudgetShare(shared_.bodies)));
  exchange_ = exchange;
  const HttpReply reply(exchange);
  if (head_.asks_permission) return reply.send(permission(head_));
  try {
    shared_.handler({head_, std::exchange(body_, {}), event_.id}, reply);
  } catch (const std::exception& error) {
    reply.send(shared_.options.error(500, error.what()));
  }
  if (phase_ == Phase::waiting || phase_ == Phase::streaming)
    shared_.leavers.watch(stream_.socket().native_handle(), number_);
}

void HttpConnection::refuse(const HttpRefusal& why) {
  begun_ = std::chrono::steady_clock::now();
  HttpResponse response = shared_.options.error(why.status, why.message);
  response.fields = why.fields;
  event_.kind = HttpEvent::Kind::refused;
  event_.reason = why.message;
  keeps_alive_ = false;
  answer(response);
}

void HttpConnection::linger() {
  if (phase_ != Phase::lingering) {
    lingered_ = ahead_.size();
    ahead_ = {};
    body_ = {};
    body_room_.clear();
    enter(Phase::lingering, lingering_time);
    return stream_.end([self = shared_from_this()](const error_code&) {
      if (self->phase_ != Phase::closed) self->linger();
    });
  }
  if (is_ended_by_client_ || lingered_ > lingering_bytes) return close();
  read(&HttpConnection::linger);
}

void HttpConnection::end_if_idle() {
  if (phase_ == Phase::idle) linger();
  if (phase_ == Phase::greeting) close();
}

void HttpConnection::client_left(bool entirely) {
  if (phase_ != Phase::waiting && phase_ != Phase::streaming && phase_ != Phase::writing) return;
  if (entirely) {
    if (event_.kind == HttpEvent::Kind::answered) event_.kind = HttpEvent::Kind::left;
    tell(event_.kind);
    return close(/*at_once=*/true);
  }
  // A half-closed and a fully closed connection look alike here.
  leave_timer_.expires_after(shared_.options.leave_time);
  leave_timer_.async_wait(
      [self = shared_from_this(), left = exchange_number_](const error_code& error) {
        if (error || left != self->exchange_number_) return;
        if (self->phase_ == Phase::waiting || self->phase_ == Phase::streaming)
          self->client_left(true);
      });
}

void HttpConnection::close(bool at_once) {
  if (phase_ == Phase::closed) return;
  abandon();
  body_room_.clear();
  answer_room_.clear();
  phase_ = Phase::closed;
  timer_.cancel();
  leave_timer_.cancel();
  error_code error;
  if (at_once) stream_.socket().set_option(boost::asio::socket_base::linger(true, 0), error);
  stream_.socket().close(error);
  boost::asio::post(shared_.context, [&shared = shared_, number = number_] {
    shared.connections.erase(number);
    shared.closed();
  });
}

}  // namespace attend
