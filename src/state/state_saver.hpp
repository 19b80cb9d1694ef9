#pragma once

namespace evictd::evict {
struct EvictionRecord;
}

namespace evictd::state {

/// Saves what an evictd that comes after this one needs. On the reactor.
class StateSaver {
 public:
  StateSaver() = default;
  StateSaver(const StateSaver&) = delete;
  StateSaver& operator=(const StateSaver&) = delete;
  virtual ~StateSaver() = default;

  /// Called within the turn in which there may be something else to save, and before a kill. It is part of the way to
  /// the kill, so it must be quick.
  virtual void save() = 0;
  /// Makes what save() would write of this eviction, and writes nothing. Afterwards the code for it is in memory, and
  /// what libraries set up at its first use is set up.
  virtual void rehearse(const evict::EvictionRecord& record) = 0;
};

}  // namespace evictd::state
