#pragma once
#include <string>

namespace evictd::cri {

/// Whether the runtime is there, as Client::watch() tells it. Present means that it answers Version, not only that its
/// socket takes connections.
struct Presence {
  bool present = false;
  std::string detail{};  ///< present: name and version ("containerd 1.6.20"); otherwise why not, in one line
};

/// Told when the runtime appears and when it goes. On the reactor.
class PresenceListener {
 public:
  virtual void presence_changed(const Presence& presence) = 0;

 protected:
  ~PresenceListener() = default;
};

}  // namespace evictd::cri
