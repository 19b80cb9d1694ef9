#pragma once
#include <evictd.pb.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace grpc {
class Channel;
}

namespace testbed {

using evictd::v1::Event;

/// All events of one subscriber, gathered by a thread of its own.
class EventStream {
 public:
  /// `kinds`: only these; none: all.
  explicit EventStream(const std::shared_ptr<grpc::Channel>& channel, const std::vector<Event::Kind>& kinds = {});
  ~EventStream();

  [[nodiscard]] std::vector<Event> all() const;
  /// The first event so far or to come that fits; fails with what did come when the deadline passes.
  Event wait_for(std::string_view what, std::chrono::milliseconds deadline,
                 const std::function<bool(const Event&)>& fits);
  Event wait_for(Event::Kind kind, std::string_view pod, std::chrono::milliseconds deadline);
  [[nodiscard]] bool has(Event::Kind kind, std::string_view pod) const;

 private:
  struct Call;  // gRPC's headers take seconds to read, and most tests include this one

  void read();

  std::unique_ptr<Call> call_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Event> events_;
  std::thread thread_;
};

/// "default/bloat"
[[nodiscard]] std::string key(const evictd::v1::PodReference& pod);

}  // namespace testbed
