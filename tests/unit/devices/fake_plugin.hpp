#pragma once
#include <deviceplugin.grpc.pb.h>
#include <grpcpp/server.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace evictd::test {

/// One device as a plugin tells it.
[[nodiscard]] ::v1beta1::Device plugin_device(std::string id, std::vector<std::int64_t> numa_nodes = {},
                                              bool healthy = true);

/// A device plugin inside the test: serves v1beta1.DevicePlugin at a unix socket, and does as the test says. All
/// methods may be called from any thread.
class FakePlugin {
 public:
  explicit FakePlugin(std::string socket);
  ~FakePlugin();
  FakePlugin(const FakePlugin&) = delete;
  FakePlugin& operator=(const FakePlugin&) = delete;

  /// Its server lets each connection make calls for about so long; those under way go on. Before start().
  void limit_connections(std::chrono::milliseconds age) { longest_connection_ = age; }
  void start();
  /// As if it were killed: calls under way break, the socket is gone.
  void stop();

  /// What whoever listens is told, now and when it begins to.
  void tell(std::vector<::v1beta1::Device> devices);
  void set_options(bool pre_start, bool prefers);
  /// What a call gets; before that Allocate answers with a variable DEVICES of all ids.
  using Allocate = std::function<grpc::Status(const ::v1beta1::AllocateRequest&, ::v1beta1::AllocateResponse&)>;
  void on_allocate(Allocate answer);
  /// Which of those that would do it prefers: the last ones by their ids, as many as are asked for, unless told.
  using Prefer = std::function<grpc::Status(const ::v1beta1::PreferredAllocationRequest&,
                                            ::v1beta1::PreferredAllocationResponse&)>;
  void on_prefer(Prefer answer);
  /// From now on the method takes calls and answers none until stop(), or until the caller gives up.
  void hang(const std::string& method);
  /// It answers again, also what it has taken.
  void go_on(const std::string& method);
  void fail(const std::string& method, const grpc::Status& status);

  /// "Allocate a0 b1", "PreStartContainer a0", "ListAndWatch": in their order.
  [[nodiscard]] std::vector<std::string> calls() const;
  [[nodiscard]] bool was_called(std::string_view call) const;

 private:
  class Service;
  struct State;
  std::string socket_;
  std::optional<std::chrono::milliseconds> longest_connection_;
  std::unique_ptr<State> state_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

/// Registers as a plugin does, over a connection of its own. Blocks until it is answered.
[[nodiscard]] grpc::Status register_plugin(const std::string& socket, const std::string& resource,
                                           const std::string& endpoint, const std::string& version = "v1beta1");

}  // namespace evictd::test
