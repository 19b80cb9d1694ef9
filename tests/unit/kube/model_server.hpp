#pragma once
#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/message.hpp"

namespace evictd::fixture {

/// As much of an API server as reports meet: pods, Events and one node, with uid preconditions, resource versions and
/// the codes of refusals. It counts what changes, so that a request applied twice shows.
class ModelServer {
 public:
  struct Pod {
    std::string uid;
    std::string mirror_of{};
    std::string phase = "Running";
    std::string reason{};
    int modifications = 0;
    std::string last_patch{};
    bool deleted = false;  ///< it is there until its kubelet has ended it
  };
  struct Node {
    int version = 1;
    std::map<std::string, std::string> conditions{};  ///< type -> status; Ready is True until somebody wrote it
    std::map<std::string, std::string> reasons{};
    std::map<std::string, std::string> messages{};
    std::map<std::string, std::string> transitions{};
    std::string heartbeat{};
    std::string taints = "[]";
    int condition_patches = 0;
    int taint_patches = 0;
  };

  /// `key`: "namespace/name"
  std::map<std::string, Pod> pods;
  std::map<std::string, int> deleted;           ///< uid -> how often
  std::map<std::string, std::string> events{};  ///< "namespace/name" -> uid of what it is about
  Node node;
  std::string node_name = "node-1";
  std::set<std::string> forbidden{};    ///< "patch pods/status", …
  bool refuses_uid_as_invalid = false;  ///< 422 about metadata.uid in place of 409
  std::vector<std::string> log{};  ///< what changed, in order: "status UID", "delete UID", "event UID", "taints", …

  [[nodiscard]] kube::Response handle(const kube::Request& request);
  /// A kubelet writes its own status over what is there. `key`: "namespace/name"
  void overwrite(const std::string& key, const std::string& phase = "Running");
  /// Who answers for the node writes its condition Ready.
  void write_ready(const std::string& status, const std::string& reason, const std::string& message);
  /// Somebody else's taint comes or goes.
  void toggle_foreign_taint();

 private:
  kube::Response handle_pod(const kube::Request& request, std::string_view rest);
  kube::Response patch_pod(Pod& pod, const std::string& body);
  kube::Response create_event(const kube::Request& request, std::string_view name_space);
  kube::Response handle_node(const kube::Request& request, bool status);
  kube::Response another_uid(std::string_view wanted, std::string_view there) const;
  [[nodiscard]] std::string node_body() const;
};

/// A refusal as the API server writes it.
[[nodiscard]] kube::Response refusal(int code, std::string_view reason, std::string_view message,
                                     std::string_view field = {});

}  // namespace evictd::fixture
