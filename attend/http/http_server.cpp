#include "attend/http/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <csignal>
#include <random>
#include <utility>

#include "attend/base/error.h"
#include "attend/http/connection-inl.h"

namespace attend {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using StreamProtocol = asio::generic::stream_protocol;

// Maximum number of connections over the limit that get a 503; further ones are closed without an
// answer.
constexpr size_t refused_connections = 64;
// Delay before the next accept if the process has no free descriptors.
constexpr HttpOptions::Time starved_time{100};
// Limits the bytes of an answer that the system buffers for a slow client.
constexpr int send_buffer_bytes = 128 << 10;

asio::ip::address address_of(const HttpOptions& options) {
  boost::system::error_code error;
  auto address = asio::ip::make_address(options.address, error);
  if (error)
    fail("--address {}: it must be a number, such as 127.0.0.1 or ::1", in_quotes(options.address));
  return address;
}

// Removes the file of a socket on which no process listens.
void remove_stale(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) fail("{}: exists and is not a socket; take another path", path);
  asio::io_context context;
  asio::local::stream_protocol::socket socket(context);
  boost::system::error_code error;
  socket.connect(asio::local::stream_protocol::endpoint(path), error);
  if (!error) fail("{}: another process listens on it; take another path", path);
  unlink(path.c_str());
}

asio::ssl::context tls_of(const HttpOptions& options) {
  asio::ssl::context tls(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(tls.native_handle(), SSL_OP_NO_RENEGOTIATION);
  // Idle connections hold no buffers.
  SSL_CTX_set_mode(tls.native_handle(), SSL_MODE_RELEASE_BUFFERS);
  boost::system::error_code error;
  tls.use_certificate_chain_file(options.certificate_file, error);
  if (error)
    fail("{}: holds no certificate of PEM ({})", options.certificate_file, error.message());
  tls.use_private_key_file(options.certificate_key_file, asio::ssl::context::pem, error);
  if (error)
    fail("{}: holds no key of PEM for the certificate in {} ({})", options.certificate_key_file,
         options.certificate_file, error.message());
  return tls;
}

// Address and port in the form of a Host field; empty for a Unix socket.
std::string host_of(const StreamProtocol::endpoint& bound) {
  const int family = bound.protocol().family();
  if (family != AF_INET && family != AF_INET6) return {};
  tcp::endpoint endpoint;
  std::copy_n(reinterpret_cast<const char*>(bound.data()), bound.size(),
              reinterpret_cast<char*>(endpoint.data()));
  asio::ip::address address = endpoint.address();
  if (address.is_v4()) return fmt::format("{}:{}", address.to_string(), endpoint.port());
  asio::ip::address_v6 wide = address.to_v6();
  // An IPv4 client of a dual-stack socket.
  if (wide.is_v4_mapped())
    return fmt::format("{}:{}", asio::ip::make_address_v4(asio::ip::v4_mapped, wide).to_string(),
                       endpoint.port());
  wide.scope_id(0);  // a Host has no zone
  return fmt::format("[{}]:{}", wide.to_string(), endpoint.port());
}

std::string new_prefix() {
  std::random_device device;
  return fmt::format("{:08x}", device());
}

}  // namespace

class HttpServer::State {
 public:
  State(const HttpOptions& options, Handler handler, Watch watch, Judge judge)
      : shared(options, std::move(handler), std::move(watch), std::move(judge)),
        acceptor_(shared.context),
        starved_(shared.context),
        drain_(shared.context),
        signals_(shared.context) {
    if (options.certificate_file.empty() != options.certificate_key_file.empty())
      fail("TLS takes a certificate and its key; give both files or neither");
    if (!options.certificate_file.empty()) shared.tls.emplace(tls_of(options));
    if (options.listener >= 0)
      take_listener();
    else if (options.socket_path.empty())
      listen_at_address();
    else
      listen_at_path();
    shared.rules.origins = options.origins;
    shared.rules.names = options.hosts;
    shared.rules.open_paths = options.open_paths;
    shared.rules.body_bytes = options.body_bytes;
    shared.request_prefix = new_prefix();
    shared.closed = [this] { end_if_drained(); };
    shared.leavers.start([this](uint64_t number, bool entirely) {
      const auto found = shared.connections.find(number);
      if (found != shared.connections.end()) std::shared_ptr(found->second)->client_left(entirely);
    });
    accept();
  }

  ~State() {
    if (!shared.options.socket_path.empty()) unlink(shared.options.socket_path.c_str());
  }

  void take_signals(Signalled signalled) {
    signalled_ = std::move(signalled);
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    // nohup makes the process ignore it.
    struct sigaction hang_up {};
    if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
      signals_.add(SIGHUP);
    wait_for_signal();
  }

  void drain() {
    shared.drains = true;
    boost::system::error_code error;
    acceptor_.close(error);
    starved_.cancel();
    for (const auto& [number, connection] : shared.connections) connection->end_if_idle();
    drain_.expires_after(shared.options.drain_time);
    drain_.async_wait([this](const boost::system::error_code& late) {
      if (!late) shared.context.stop();
    });
    end_if_drained();
  }

  HttpShared shared;
  std::string url;

 private:
  void listen_at_address();
  void listen_at_path();
  void take_listener();
  void name_address();
  void name_path(const std::string& path);
  void accept();
  void take(HttpSocket socket);

  void end_if_drained() {
    if (shared.drains && shared.connections.empty()) shared.context.stop();
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal != SIGHUP || signals_seen_ == 0) signalled_(++signals_seen_);
      wait_for_signal();
    });
  }

  asio::basic_socket_acceptor<StreamProtocol> acceptor_;
  asio::steady_timer starved_, drain_;
  asio::signal_set signals_;
  Signalled signalled_;
  int signals_seen_ = 0;
};

void HttpServer::State::listen_at_address() {
  const HttpOptions& options = shared.options;
  const tcp::endpoint wanted(address_of(options), static_cast<uint16_t>(options.port));
  boost::system::error_code error;
  acceptor_.open(wanted.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), error);
  if (!error) acceptor_.bind(wanted, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    fail("cannot listen at {} port {}: {}; take another --port, or 0 for a free one",
         options.address, options.port, error.message());
  name_address();
}

// Sets the URL and the accepted hosts.
void HttpServer::State::name_address() {
  const std::string host = host_of(acceptor_.local_endpoint());
  url = fmt::format("{}://{}", shared.tls ? "https" : "http", host);
  if (shared.tls) shared.rules.default_port = ":443";
  const std::string port = host.substr(host.rfind(':'));
  shared.rules.hosts = {host, "localhost" + port, "127.0.0.1" + port, "[::1]" + port};
}

void HttpServer::State::listen_at_path() {
  const std::string& path = shared.options.socket_path;
  remove_stale(path);
  boost::system::error_code error;
  try {
    const asio::local::stream_protocol::endpoint wanted(path);
    acceptor_.open(wanted.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), error);
    if (!error) acceptor_.bind(wanted, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  } catch (const boost::system::system_error& long_path) {
    error = long_path.code();
  }
  if (error) fail("cannot listen at the socket {}: {}", path, error.message());
  name_path(path);
}

void HttpServer::State::take_listener() {
  const int listener = shared.options.listener;
  int listens = 0, family = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
      getsockopt(listener, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 ||
      (family != AF_INET && family != AF_INET6 && family != AF_UNIX))
    fail("descriptor {} is not a listening socket; pass one, or give an address", listener);
  boost::system::error_code error;
  acceptor_.assign(StreamProtocol(family, 0), listener, error);
  if (!error) acceptor_.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), error);
  if (error) fail("cannot listen at the descriptor {}: {}", listener, error.message());
  if (family != AF_UNIX) return name_address();
  const auto bound = acceptor_.local_endpoint();
  name_path(reinterpret_cast<const sockaddr_un*>(bound.data())->sun_path);
}

void HttpServer::State::name_path(const std::string& path) {
  url = "unix:" + path;
  // A web page cannot connect to a Unix socket.
  shared.rules.takes_any_host = true;
}

void HttpServer::State::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, HttpSocket socket) {
    if (shared.drains || error == asio::error::operation_aborted) return;
    if (!error) {
      take(std::move(socket));
      return accept();
    }
    starved_.expires_after(starved_time);
    starved_.async_wait([this](const boost::system::error_code& ended) {
      if (!ended) accept();
    });
  });
}

void HttpServer::State::take(HttpSocket socket) {
  const size_t count = shared.connections.size();
  const size_t maximum = shared.options.connections;
  // The TLS handshake with a refused client would cost more than the limit saves.
  if (count >= (shared.tls ? maximum : maximum + refused_connections)) return;
  boost::system::error_code ignored;  // a Unix socket lacks this option
  socket.set_option(tcp::no_delay(true), ignored);
  const uint64_t number = ++shared.last_connection;
  const auto local = socket.local_endpoint(ignored);
  const auto connection =
      std::make_shared<HttpConnection>(std::move(socket), shared, number, host_of(local));
  shared.connections.emplace(number, connection);
  if (count < maximum) return connection->start();
  connection->refuse(
      {503,
       fmt::format("{} connections are open, which is the maximum; ask later", maximum),
       {{"Retry-After", "1"}}});
}

HttpServer::HttpServer(const HttpOptions& options, Handler handler, Watch watch, Judge judge)
    : state_(std::make_unique<State>(options, std::move(handler), std::move(watch),
                                     std::move(judge))) {}
HttpServer::~HttpServer() = default;

std::string HttpServer::url() const { return state_->url; }

void HttpServer::take_signals(Signalled signalled) { state_->take_signals(std::move(signalled)); }

void HttpServer::run() { state_->shared.context.run(); }

void HttpServer::call_after(HttpOptions::Time time, std::function<void()> work) {
  const auto timer = std::make_shared<asio::steady_timer>(state_->shared.context, time);
  timer->async_wait([timer, work = std::move(work)](const boost::system::error_code& error) {
    if (!error) work();
  });
}

void HttpServer::drain() {
  asio::post(state_->shared.context, [state = state_.get()] { state->drain(); });
}

void HttpServer::stop() { state_->shared.context.stop(); }

}  // namespace attend
