#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::pods {

/// Who else than the runtime knows pods, the one who knows most first: of several specs the first one's counts.
enum class SpecOrigin : std::uint8_t { ApiServer, Kubelet, Manifests };

/// As the configuration has it below `podSources`: "apiServer", "kubelet", "manifests".
[[nodiscard]] std::string_view name(SpecOrigin origin);

/// How a source stands, as `evictctl status` shows it.
struct SpecSourceStatus {
  enum class State : std::uint8_t {
    Waiting,  ///< it was never heard of, and nothing went wrong yet
    Synced,   ///< what is known was true at the last contact, and the source would tell what changes
    Stale,    ///< it cannot be reached or read: what is known is as old as the last contact
  };

  SpecOrigin origin = SpecOrigin::ApiServer;
  State state = State::Waiting;
  std::size_t pods = 0;                         ///< whose specs are known
  std::optional<core::Instant> last_contact{};  ///< absent: never
  std::optional<core::Instant> stale_since{};   ///< set where it is stale
  std::string error{};                          ///< why it is stale, or what of it cannot be read; one line
};

/// Hears of sources of specs. Called on the reactor.
class SpecListener {
 public:
  /// pods() of a source is another list.
  virtual void specs_changed() = 0;
  /// A source became stale, or is so for another reason.
  virtual void spec_source_degraded(SpecOrigin origin, const Error& error) = 0;
  /// A part of it cannot be read. Called once for each error.
  virtual void spec_unreadable(SpecOrigin origin, const Error& error) = 0;

 protected:
  ~SpecListener() = default;
};

/// Gives the specs of the node's pods, of those that run and of others.
///
/// It lives on the reactor and never blocks it: what takes time is done in a pool of threads. Whatever becomes of it,
/// its last good list stays, for nothing that was known of a pod gets wrong by a lost connection. A new source is one
/// file in this folder and one line where sources are put together (src/commands).
class SpecSource {
 public:
  explicit SpecSource(SpecOrigin origin) : origin_{origin} {}
  SpecSource(const SpecSource&) = delete;
  SpecSource& operator=(const SpecSource&) = delete;
  virtual ~SpecSource() = default;

  /// Begins to look. To be called once; the listener must outlive the source or stop().
  void start(SpecListener& listener);
  /// Ends all calls to the listener.
  void stop();
  /// Something of it may have changed, such as that a new pod runs: it looks now instead of later.
  virtual void look() = 0;

  [[nodiscard]] SpecOrigin origin() const { return origin_; }
  /// The last good list. Never null, empty before the first.
  [[nodiscard]] const core::PodListPtr& pods() const { return pods_; }
  [[nodiscard]] SpecSourceStatus status() const;

 protected:
  virtual void begin() = 0;
  virtual void end() = 0;
  /// For a source that is in contact without anything to tell.
  [[nodiscard]] virtual std::optional<core::Instant> last_contact() const { return last_contact_; }

  /// The source was heard of, and this is what it knows.
  void heard(core::PodListPtr pods);
  /// The source was heard of, and nothing changed.
  void heard() { heard(pods_); }
  /// It cannot be reached or read; the list stays. `since`: where it is known to be longer.
  void lost(const Error& error, std::optional<core::Instant> since = {});
  /// What of it cannot be read now, one line each. What is new is told.
  void cannot_read(std::vector<Error> errors);

 private:
  SpecOrigin origin_;
  SpecListener* listener_ = nullptr;
  core::PodListPtr pods_ = std::make_shared<core::PodList>();
  std::optional<core::Instant> last_contact_;
  std::optional<core::Instant> stale_since_;
  std::string error_;  // why it is stale
  std::vector<Error> cannot_read_;
};

}  // namespace evictd::pods
