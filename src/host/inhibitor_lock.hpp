#pragma once

namespace evictd::host {

class InheritedDescriptors;

/// A lock that logind gave us: a shutdown waits for as long as the descriptor is open anywhere. Where systemd stores a
/// copy (host/descriptor_store.hpp), a shutdown goes on waiting while evictd restarts.
class InhibitorLock {
 public:
  InhibitorLock() = default;
  /// Owns the descriptor.
  explicit InhibitorLock(int descriptor) : descriptor_{descriptor} {}
  InhibitorLock(InhibitorLock&& other) noexcept;
  InhibitorLock& operator=(InhibitorLock&& other) noexcept;
  /// Closes our own descriptor only: if evictd merely restarts, systemd still has the lock for its successor.
  ~InhibitorLock();

  [[nodiscard]] bool held() const { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// Gives systemd a copy; it takes the place of the one it had.
  void store() const;
  /// logind does not wait for evictd any more. Does nothing if it is not held.
  void release();

  /// The lock of an evictd that systemd restarted; not held where there is none.
  [[nodiscard]] static InhibitorLock inherited(InheritedDescriptors& descriptors);

 private:
  int descriptor_ = -1;
};

}  // namespace evictd::host
