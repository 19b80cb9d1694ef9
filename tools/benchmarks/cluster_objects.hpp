#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// What a request to the API server is for.
enum class Call : std::uint8_t {
  List,        ///< of a node's pods
  Watch,       ///< likewise, begun
  ReadNode,    ///< before it is written to
  ReadPod,     ///< to see whether its status is as it was written
  Conditions,  ///< PATCH nodes/NAME/status
  Taints,      ///< PATCH nodes/NAME
  PodStatus,   ///< PATCH pods/NAME/status: an eviction is told
  PodEvent,    ///< Evicted
  NodeEvent,   ///< EvictionThresholdMet
  Other,       ///< none that the bench knows: there must be none
};
inline constexpr std::size_t calls = static_cast<std::size_t>(Call::Other) + 1;

/// The number behind the first `word`; -1 where there is none.
[[nodiscard]] int number_after(std::string_view text, std::string_view word);

/// How often pods were told to be evicted.
struct Told {
  int statuses = 0;  ///< pods that became Failed
  int events = 0;    ///< pods with an Event
  int again = 0;     ///< statuses and Events that were there already
};

/// The pods and nodes of a cluster of nodes that have equally many pods each, in as many bytes as real ones take. Pod
/// 3 of node 17 is default/node-17-pod-3.
class ClusterObjects {
 public:
  struct Handled {
    Call call = Call::Other;
    int node = -1;
    int status = 200;
    std::string body{};    ///< of the answer; none for a watch
    std::string change{};  ///< what the node's watch tells of it; empty: nothing changed
  };

  ClusterObjects(int nodes, int pods);

  [[nodiscard]] Handled handle(std::string_view method, std::string_view target, const std::string& body);
  /// A watch's BOOKMARK.
  [[nodiscard]] std::string bookmark() const;
  [[nodiscard]] const Told& told() const { return told_; }

  [[nodiscard]] std::string node_json(int node) const;
  [[nodiscard]] std::string pod_json(int node, int pod) const;

 private:
  struct Pod {
    std::uint64_t version = 1;
    bool failed = false;
  };
  struct Node {
    std::uint64_t version = 1;
    std::string conditions = "[]";
    std::string taints = "[]";
    std::vector<Pod> pods{};
  };

  [[nodiscard]] std::string list(int node) const;
  void patch_node(Handled& handled, bool status, const std::string& body);
  void patch_pod(Handled& handled, int pod, const std::string& body);
  void create_event(Handled& handled, const std::string& body);

  int pods_;
  std::uint64_t version_ = 1;
  std::vector<Node> nodes_;
  std::set<std::string> events_;  // names
  Told told_;
  std::string containers_;
  std::string managed_fields_;
  std::string node_images_;
};

}  // namespace bench
