#include "kube/node_mirror.hpp"

#include <utility>
#include <vector>

#include "kube/client.hpp"
#include "kube/node_attributes.hpp"
#include "kube/url.hpp"

namespace evictd::kube {

NodeMirror::NodeMirror(boost::asio::any_io_executor reactor, boost::asio::any_io_executor workers, Client& client,
                       const std::string& node_name, std::function<void(const Error&)> cannot_read,
                       ReflectorOptions options)
    : cannot_read_{std::move(cannot_read)},
      reflector_{std::move(reactor),
                 std::move(workers),
                 client,
                 {.path = "/api/v1/nodes", .query = "fieldSelector=metadata.name%3D" + percent_encoded(node_name)},
                 {.replaced =
                      [this](const std::vector<std::string>& objects) {
                        if (objects.empty()) return node_.reset();
                        heard(objects.front());
                      },
                  .upserted = [this](const std::string& object) { heard(object); },
                  .deleted = [this](const std::string&) { node_.reset(); }},
                 options} {}

/// A node is some 10 KB: that takes the reactor a tenth of a millisecond every few minutes.
void NodeMirror::heard(const std::string& object) {
  auto node = parse_node_attributes(object);
  if (!node) return cannot_read_(node.error());
  node_ = *std::move(node);
}

}  // namespace evictd::kube
