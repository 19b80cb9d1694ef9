#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "kube/reflector.hpp"
#include "pods/spec_source.hpp"

namespace evictd::pods {

struct ApiServerSourceOptions {
  std::string node_name;
  kube::ReflectorOptions reflector{};
  /// Reading what the server sent takes milliseconds. Where nothing of it is through for so long, the source is stale.
  core::Duration longest_parse = std::chrono::seconds{30};
};

/// The API server's pods that are bound to this node (podSources.apiServer): a list, then a watch. Nobody knows more of
/// a pod, but of a static pod there is only the mirror here.
class ApiServerSource final : public SpecSource, private kube::ReflectorListener {
 public:
  /// `pool` parses. The client must outlive it.
  ApiServerSource(boost::asio::any_io_executor reactor, boost::asio::any_io_executor pool, kube::Client& client,
                  ApiServerSourceOptions options);
  ~ApiServerSource() override;

  /// The watch tells by itself.
  void look() override {}

 private:
  struct Change;  // what the reflector told, in its order
  struct Parsed;

  void begin() override;
  void end() override;
  [[nodiscard]] std::optional<core::Instant> last_contact() const override;
  void replaced(std::vector<std::string> objects) override;
  void upserted(std::string object) override;
  void deleted(std::string object) override;
  void state_changed(const kube::ReflectorState& state) override;
  void parse(Change change);
  void await_parsed();
  void apply(Parsed parsed);
  void stands(const kube::ReflectorState& state);

  boost::asio::any_io_executor reactor_;
  boost::asio::any_io_executor in_order_;  // a strand of the pool: changes must not overtake each other
  kube::Reflector reflector_;
  std::map<std::string, core::PodPtr, std::less<>> by_uid_;
  std::vector<Error> unreadable_;  // since the last list
  core::Duration longest_parse_;
  std::size_t unparsed_ = 0;               // changes that are not through
  core::Instant unparsed_since_;           // no other one has been
  boost::asio::steady_timer parse_timer_;  // for the next of them
  bool running_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is under way outlives this
};

}  // namespace evictd::pods
