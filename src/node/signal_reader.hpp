#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/observation.hpp"
#include "core/signal.hpp"

namespace evictd::node {

/// Looks at signals between two passes, up to a thousand times a second (wake::Sampler). On the reactor: nothing here
/// blocks, nor allocates when all is well.
class SignalProbe {
 public:
  virtual ~SignalProbe() = default;

  /// Those that it looks at; always the same.
  [[nodiscard]] virtual std::span<const core::Signal> signals() const = 0;

  /// What the signal's observation would say now, in the signal's unit. Absent where it cannot be read.
  [[nodiscard]] virtual std::optional<std::int64_t> available(core::Signal signal) const = 0;
  /// Cheaper, and never more than available() would say. Absent where there is no cheaper way.
  [[nodiscard]] virtual std::optional<std::int64_t> available_at_least(core::Signal /*signal*/) const { return {}; }

  /// Whether reading may take its time, as with a disk: look() reads, and available() says what was read last.
  [[nodiscard]] virtual bool takes_time() const { return false; }
  /// Reads beside the reactor, unless that is under way, then calls back on it, if ever. Of several callers for one
  /// signal the last is called. Only where reading takes time.
  virtual void look(core::Signal /*signal*/, std::move_only_function<void()> /*then*/) {}

 protected:
  SignalProbe() = default;
  SignalProbe(const SignalProbe&) = default;
  SignalProbe(SignalProbe&&) = default;
  SignalProbe& operator=(const SignalProbe&) = default;
  SignalProbe& operator=(SignalProbe&&) = default;
};

/// What a pass has read beside the node's memory: one for each thing that can run short. On the reactor, without
/// blocking.
class SignalReader : public SignalProbe {
 public:
  /// Replaces the signals' observations, the rest stays. `now` becomes the time of what is read now. What cannot be
  /// read has no observation, and an error that names its key or what it stands for.
  [[nodiscard]] virtual std::vector<Error> observe(core::Observations& observations, core::Instant now) = 0;
};

}  // namespace evictd::node
