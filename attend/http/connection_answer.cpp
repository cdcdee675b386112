#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

#include "attend/http/connection-inl.h"

namespace attend {
namespace {

// Bytes per write deadline: clients cannot extend it by reading a little at a time.
constexpr size_t bytes_per_write = 256 << 10;
// Bytes of an answer per connection outside the common budget.
constexpr size_t free_answer_bytes = 64 << 10;

}  // namespace

ConnectionExchange::~ConnectionExchange() {
  if (is_ended_ || is_abandoned) return;
  boost::asio::post(context_, [connection = connection_, number = number_] {
    if (const auto found = connection.lock()) found->give_up_answer(number);
  });
}

void ConnectionExchange::send(HttpResponse response, bool is_whole) {
  if (is_begun_.exchange(true)) return;
  if (is_whole)
    is_ended_ = true;
  else
    waiting_bytes += static_cast<int64_t>(response.body.size());
  // Runs immediately on the server's own thread.
  boost::asio::dispatch(context_,
                        [self = shared_from_this(), response = std::move(response), is_whole] {
                          if (const auto found = self->connection_.lock())
                            found->begin_answer(self->number_, response, is_whole);
                        });
}

void ConnectionExchange::add(std::string part) {
  if (is_ended_ || is_abandoned) return;
  waiting_bytes += static_cast<int64_t>(part.size());
  boost::asio::post(context_, [self = shared_from_this(), part = std::move(part)] {
    if (const auto found = self->connection_.lock()) found->add_part(self->number_, part);
  });
}

void ConnectionExchange::end() {
  if (is_ended_.exchange(true)) return;
  boost::asio::post(context_, [self = shared_from_this()] {
    if (const auto found = self->connection_.lock()) found->end_answer(self->number_);
  });
}

void HttpReply::send(HttpResponse response) const { exchange_->send(std::move(response), true); }
void HttpReply::begin(HttpResponse response) const { exchange_->send(std::move(response), false); }
void HttpReply::add(std::string part) const { exchange_->add(std::move(part)); }
void HttpReply::end() const { exchange_->end(); }
bool HttpReply::is_abandoned() const { return exchange_->is_abandoned; }
int64_t HttpReply::waiting_bytes() const { return exchange_->waiting_bytes; }

void HttpConnection::begin_answer(uint64_t exchange, const HttpResponse& response, bool is_whole) {
  if (exchange != exchange_number_ || phase_ != Phase::waiting) return;
  try {
    if (!has_answer_room(response.body.size())) {
      abandon();
      HttpResponse full = shared_.options.error(
          503, fmt::format("answers that clients have not read yet take over {} bytes; ask later",
                           shared_.options.all_answers));
      full.fields = {{"Retry-After", "1"}};
      return answer(full);
    }
    if (is_whole) return answer(response);
    put_head(response, /*has_length=*/false);
  } catch (const std::logic_error&) {
    return answer(shared_.options.error(500, "the answer has a head that cannot be sent"));
  }
  phase_ = Phase::streaming;
  stream_end_ = Clock::now() + shared_.options.stream_time;
  is_ended_ = false;
  put_part(response.body);
  write();
  // For HEAD the answer is complete.
  if (head_.method == "HEAD") {
    abandon();
    end_answer(exchange);
  }
}

void HttpConnection::add_part(uint64_t exchange, const std::string& part) {
  if (exchange != exchange_number_ || phase_ != Phase::streaming || is_ended_) return;
  put_part(part);
  if (next_part_bytes_ > shared_.options.stream_bytes ||
      !has_answer_room(out_.size() + next_.size())) {
    event_.reason = "the client reads an answer in parts too slowly";
    return client_left(true);
  }
  write();
}

void HttpConnection::end_answer(uint64_t exchange) {
  if (exchange != exchange_number_ || phase_ != Phase::streaming || is_ended_) return;
  is_ended_ = true;
  if (has_chunks_) next_ += "0\r\n\r\n";
  write();
}

void HttpConnection::give_up_answer(uint64_t exchange) {
  if (exchange != exchange_number_) return;
  if (phase_ == Phase::waiting)
    return answer(shared_.options.error(500, "the request was dropped"));
  // Disconnecting shows the client that the answer is incomplete.
  if (phase_ == Phase::streaming && !is_ended_) client_left(true);
}

void HttpConnection::answer(const HttpResponse& response) {
  put_head(response, /*has_length=*/true);
  if (head_.method != "HEAD") next_ += response.body;
  enter(Phase::writing, shared_.options.write_time);
  is_ended_ = true;
  write();
}

void HttpConnection::put_head(const HttpResponse& response, bool has_length) {
  if (shared_.drains || (!has_length && !head_.takes_chunks)) keeps_alive_ = false;
  has_chunks_ = !has_length && head_.takes_chunks && head_.method != "HEAD";
  event_.status = response.status;
  next_ += http_response_head(response, event_.id,
                              {.has_length = has_length,
                               .takes_chunks = head_.takes_chunks,
                               .keeps_alive = keeps_alive_,
                               .origin = head_.origin});
}

void HttpConnection::put_part(const std::string& part) {
  if (part.empty() || head_.method == "HEAD") return;
  next_part_bytes_ += static_cast<int64_t>(part.size());
  if (has_chunks_)
    next_ += fmt::format("{:x}\r\n{}\r\n", part.size(), part);
  else
    next_ += part;
}

// Reserves room for that many bytes; returns false if there is none.
bool HttpConnection::has_answer_room(size_t size) {
  return answer_room_.resize(size > free_answer_bytes ? static_cast<int64_t>(size) : 0);
}

// Drops the written data and continues with the next.
void HttpConnection::take_next() {
  if (const auto exchange = exchange_.lock()) exchange->waiting_bytes -= out_part_bytes_;
  if (out_.capacity() > free_answer_bytes) out_ = {};
  out_.clear();
  std::swap(out_, next_);
  written_ = 0;
  out_part_bytes_ = std::exchange(next_part_bytes_, 0);
}

void HttpConnection::write() {
  if (is_writing_) return;
  if (written_ == out_.size()) {
    take_next();
    // Always succeeds: the size shrank, or its bytes were already counted.
    if (phase_ == Phase::streaming || out_.empty()) has_answer_room(out_.size());
  }
  if (out_.empty()) {
    if (is_ended_) return finish_answer();
    // Waits for the next part without a deadline.
    return set_deadline(no_deadline);
  }
  is_writing_ = true;
  enter(phase_, shared_.options.write_time);
  const size_t size = std::min(out_.size() - written_, bytes_per_write);
  stream_.write(boost::asio::buffer(out_.data() + written_, size),
                [self = shared_from_this()](const boost::system::error_code& error, size_t size) {
                  self->is_writing_ = false;
                  self->event_.sent += static_cast<int64_t>(size);
                  if (self->phase_ == Phase::closed) return;
                  if (error) return self->client_left(true);
                  self->written_ += size;
                  self->write();
                });
}

void HttpConnection::finish_answer() {
  tell(event_.kind);
  event_ = {};
  head_ = {};
  exchange_.reset();
  exchange_number_ = 0;
  leave_timer_.cancel();
  if (!keeps_alive_ || shared_.drains) return linger();
  enter(Phase::idle, shared_.options.idle_time);
  read_head();
}

void HttpConnection::abandon() {
  if (const auto exchange = exchange_.lock()) exchange->is_abandoned = true;
}

void HttpConnection::tell(HttpEvent::Kind kind) {
  event_.kind = kind;
  event_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  shared_.watch(event_);
}

}  // namespace attend
