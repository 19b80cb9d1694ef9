#pragma once
#include <string>

namespace evictd::agent {

/// Who has the kernel's OOM killer follow an order.
class KillOrder {
 public:
  /// The uid of who went first a moment ago; empty: nobody.
  [[nodiscard]] virtual std::string likeliest() const = 0;

 protected:
  ~KillOrder() = default;
};

}  // namespace evictd::agent
