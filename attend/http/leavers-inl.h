#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>

namespace attend {

// Tells which clients have left. A read sees that only behind the bytes that a client sent ahead,
// which are not read while its answer is computed.
class Leavers {
 public:
  // `entirely`: it neither sends nor reads any more; otherwise it sends no more.
  using Left = std::function<void(uint64_t number, bool entirely)>;

  explicit Leavers(boost::asio::io_context& context);

  void start(Left left);
  // Tells once about the connection of that number, on that socket.
  void watch(int socket, uint64_t number);

 private:
  void wait();

  boost::asio::posix::stream_descriptor events_;
  Left left_;
};

}  // namespace attend
