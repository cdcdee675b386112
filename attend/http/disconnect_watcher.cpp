#include <sys/epoll.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "attend/http/disconnect_watcher-inl.h"

namespace attend {
namespace {

int new_epoll() {
  const int descriptor = epoll_create1(EPOLL_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return descriptor;
}

}  // namespace

DisconnectWatcher::DisconnectWatcher(boost::asio::io_context& context)
    : events_(context, new_epoll()) {}

void DisconnectWatcher::start(Left left) {
  left_ = std::move(left);
  wait();
}

void DisconnectWatcher::watch(int socket, uint64_t number) {
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLONESHOT;
  event.data.u64 = number;
  // MOD succeeds if the socket was watched for an earlier request.
  if (epoll_ctl(events_.native_handle(), EPOLL_CTL_MOD, socket, &event) != 0)
    epoll_ctl(events_.native_handle(), EPOLL_CTL_ADD, socket, &event);
}

void DisconnectWatcher::wait() {
  events_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](const boost::system::error_code& error) {
                       if (error) return;
                       epoll_event events[64];
                       int count = 0;
                       while ((count = epoll_wait(events_.native_handle(), events, 64, 0)) > 0)
                         for (int i = 0; i < count; ++i)
                           left_(events[i].data.u64,
                                 (events[i].events & (EPOLLHUP | EPOLLERR)) != 0);
                       wait();
                     });
}

}  // namespace attend
