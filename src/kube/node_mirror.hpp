#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <optional>
#include <string>

#include "admission/node_snapshot.hpp"
#include "core/error.hpp"
#include "kube/reflector.hpp"

namespace evictd::kube {

/// The Node object of this node, as the API server has it: a list, then a watch. What was last heard holds while the
/// API server is away. On the reactor.
class NodeMirror {
 public:
  /// `cannot_read` is told of an object that is no node. The client must outlive this.
  NodeMirror(boost::asio::any_io_executor reactor, boost::asio::any_io_executor workers, Client& client,
             const std::string& node_name, std::function<void(const Error&)> cannot_read,
             ReflectorOptions options = {});

  void start() { reflector_.start(); }
  void stop() { reflector_.stop(); }

  /// Absent: never heard of, or deleted.
  [[nodiscard]] const std::optional<admission::Node>& node() const { return node_; }

 private:
  void heard(const std::string& object);

  std::optional<admission::Node> node_;
  std::function<void(const Error&)> cannot_read_;
  Reflector reflector_;
};

}  // namespace evictd::kube
