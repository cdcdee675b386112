#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <utility>

namespace attend {

using HttpSocket = boost::asio::generic::stream_protocol::socket;

// Socket of a connection, with TLS if there is a context. `done` is called with an error_code;
// reads and writes also pass the number of bytes.
class HttpStream {
 public:
  HttpStream(HttpSocket socket, boost::asio::ssl::context* tls) : socket_(std::move(socket)) {
    if (tls != nullptr) tls_.emplace(socket_, *tls);
  }

  HttpSocket& socket() { return socket_; }
  bool has_tls() const { return tls_.has_value(); }

  template <class Done>
  void greet(Done done) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::move(done));
  }

  template <class Done>
  void read(boost::asio::mutable_buffer bytes, Done done) {
    if (tls_ && !is_ended_)
      tls_->async_read_some(bytes, std::move(done));
    else
      socket_.async_read_some(bytes, std::move(done));
  }

  template <class Done>
  void write(boost::asio::const_buffer bytes, Done done) {
    if (tls_)
      boost::asio::async_write(*tls_, bytes, std::move(done));
    else
      boost::asio::async_write(socket_, bytes, std::move(done));
  }

  // Closes the sending side. Data read afterwards must be dropped.
  template <class Done>
  void end(Done done) {
    if (!tls_) return end_socket(std::move(done));
    tls_->async_shutdown([this, done = std::move(done)](const boost::system::error_code&) mutable {
      end_socket(std::move(done));
    });
  }

 private:
  template <class Done>
  void end_socket(Done done) {
    is_ended_ = true;
    boost::system::error_code ignored;  // set if the client has already disconnected
    socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
    done(boost::system::error_code());
  }

  HttpSocket socket_;
  std::optional<boost::asio::ssl::stream<HttpSocket&>> tls_;
  bool is_ended_ = false;
};

}  // namespace attend
