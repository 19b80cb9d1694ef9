#pragma once
#include <boost/asio/awaitable.hpp>

#include "cri/reply.hpp"

namespace evictd::cri {

/// Messages that the runtime sends by itself, one after the other, until it or we end it. On the reactor.
template <class Message>
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Ends it. A next() that is under way still completes, as cancelled.
  virtual ~Stream() = default;

  /// The next message; one call at a time. It may take for ever: a runtime has nothing to say, or hangs. While nobody
  /// asks, the runtime can send no more than fits into the stream's window, and has to wait or to throw away.
  /// An error is the stream's end: Unavailable as well where the runtime ended it in order, Unimplemented where it has
  /// no such stream, Cancelled by us, Refused also for what is no message. Nothing is thrown.
  virtual boost::asio::awaitable<Reply<Message>> next() = 0;
  /// Has the next() that is under way, and any later one, end as cancelled, a little later.
  virtual void cancel() = 0;
};

}  // namespace evictd::cri
