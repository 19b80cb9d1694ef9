#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/node.hpp"
#include "kube/reflector.hpp"

namespace evictd::kube {

/// The Node object of this node, as the API server has it: a list, then a watch. What was last heard holds while the
/// API server is away. On the reactor.
class NodeMirror final : private ReflectorListener {
 public:
  /// The client must outlive this.
  NodeMirror(boost::asio::any_io_executor reactor, boost::asio::any_io_executor workers, Client& client,
             const std::string& node_name, ReflectorOptions options = {});

  void start() { reflector_.start(); }
  void stop() { reflector_.stop(); }

  /// Absent: never heard of, or deleted.
  [[nodiscard]] const std::optional<core::Node>& node() const { return node_; }
  /// Why the object that was heard of last is no node, which is also logged; absent: it is one.
  [[nodiscard]] const std::optional<Error>& unreadable() const { return unreadable_; }

 private:
  void replaced(std::vector<std::string> objects) override;
  void upserted(std::string object) override;
  void deleted(std::string object) override;

  std::optional<core::Node> node_;
  std::optional<Error> unreadable_;
  Reflector reflector_;
};

}  // namespace evictd::kube
