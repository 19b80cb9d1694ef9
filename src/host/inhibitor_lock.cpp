#include "host/inhibitor_lock.hpp"

#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace evictd::host {
namespace {

constexpr std::string_view stored_name = "evictd-shutdown";

void forget_stored() { sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=evictd-shutdown"); }

void free_names(char** names, int count) {
  for (int index = 0; index < count; ++index) std::free(names[index]);
  std::free(static_cast<void*>(names));
}

}  // namespace

InhibitorLock::InhibitorLock(InhibitorLock&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}

InhibitorLock& InhibitorLock::operator=(InhibitorLock&& other) noexcept {
  if (this == &other) return *this;
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

InhibitorLock::~InhibitorLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InhibitorLock::store() const {
  forget_stored();
  sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=evictd-shutdown", &descriptor_, 1);
}

void InhibitorLock::release() {
  if (descriptor_ < 0) return;
  forget_stored();
  ::close(std::exchange(descriptor_, -1));
}

InhibitorLock InhibitorLock::inherited() {
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  InhibitorLock lock;
  for (int index = 0; index < count; ++index) {
    const int descriptor = SD_LISTEN_FDS_START + index;
    if (names[index] == stored_name && !lock.held())
      lock = InhibitorLock{descriptor};
    else
      ::close(descriptor);  // nothing else was ever given to systemd
  }
  if (names != nullptr) free_names(names, count);
  return lock;
}

}  // namespace evictd::host
