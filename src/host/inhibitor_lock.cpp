#include "host/inhibitor_lock.hpp"

#include <unistd.h>

#include <string_view>
#include <utility>

#include "host/descriptor_store.hpp"

namespace evictd::host {
namespace {

constexpr std::string_view stored_name = "evictd-shutdown";

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

void InhibitorLock::store() const { store_descriptor(stored_name, descriptor_); }

void InhibitorLock::release() {
  if (descriptor_ < 0) return;
  forget_descriptor(stored_name);
  ::close(std::exchange(descriptor_, -1));
}

InhibitorLock InhibitorLock::inherited(InheritedDescriptors& descriptors) {
  return InhibitorLock{descriptors.take(stored_name)};
}

}  // namespace evictd::host
