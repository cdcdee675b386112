#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>

namespace attend {

// Reports clients that disconnect. A read cannot detect this during a computation: data that the
// client sent ahead is not read then.
class DisconnectWatcher {
 public:
  // `entirely`: neither sends nor reads any more; otherwise only its sending side is closed.
  using Left = std::function<void(uint64_t number, bool entirely)>;

  explicit DisconnectWatcher(boost::asio::io_context& context);

  void start(Left left);
  // Reports the connection `number` on `socket` at most once.
  void watch(int socket, uint64_t number);

 private:
  void wait();

  boost::asio::posix::stream_descriptor events_;
  Left left_;
};

}  // namespace attend
