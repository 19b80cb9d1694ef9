#include "kube/node_mirror.hpp"

#include <utility>

#include "kube/client.hpp"
#include "kube/node_attributes.hpp"
#include "kube/url.hpp"
#include "os/log.hpp"

namespace evictd::kube {

NodeMirror::NodeMirror(boost::asio::any_io_executor reactor, boost::asio::any_io_executor workers, Client& client,
                       const std::string& node_name, ReflectorOptions options)
    : reflector_{std::move(reactor),
                 std::move(workers),
                 client,
                 {.path = "/api/v1/nodes", .query = "fieldSelector=metadata.name%3D" + percent_encoded(node_name)},
                 *this,
                 options} {}

void NodeMirror::replaced(std::vector<std::string> objects) {
  if (objects.empty()) return node_.reset();
  upserted(std::move(objects.front()));
}

/// A node is some 10 KB: that takes the reactor a tenth of a millisecond every few minutes.
void NodeMirror::upserted(std::string object) {
  auto node = parse_node_attributes(object);
  unreadable_.reset();
  if (node) {
    node_ = *std::move(node);
  } else {
    unreadable_ = node.error();
    os::log_warning("{}", unreadable_->message);
  }
}

void NodeMirror::deleted(std::string /*object*/) { node_.reset(); }

}  // namespace evictd::kube
