#pragma once
#include <map>
#include <string>
#include <string_view>

namespace evictd::host {

/// Where systemd runs evictd and has room for it (FileDescriptorStoreMax=), it holds copies of descriptors for the
/// evictd that it starts next (sd_pid_notify_with_fds(3)). Elsewhere these do nothing. On the reactor, which does not
/// wait for systemd; the ServiceManager sends them, now or when systemd reads again.
///
/// The copy takes the place of the one of the same name. The descriptor may be closed afterwards.
void store_descriptor(std::string_view name, int descriptor);
void forget_descriptor(std::string_view name);

/// What an earlier evictd has stored. Those that are not taken are closed.
class InheritedDescriptors {
 public:
  /// Reads the environment, and takes what it finds out of it: once, before there are other threads.
  InheritedDescriptors();
  InheritedDescriptors(const InheritedDescriptors&) = delete;
  InheritedDescriptors& operator=(const InheritedDescriptors&) = delete;
  ~InheritedDescriptors();

  /// The caller's from now on; -1: there is none of this name.
  [[nodiscard]] int take(std::string_view name);

 private:
  std::multimap<std::string, int, std::less<>> descriptors_;
};

}  // namespace evictd::host
