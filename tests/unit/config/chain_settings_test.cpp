#include "config/chain_settings.hpp"

#include <doctest/doctest.h>

namespace evictd::config {

TEST_CASE("admission goes by the node's KubeletConfiguration") {
  KubeletConfiguration kubelet;
  CHECK(chain_settings(kubelet).allowed_unsafe_sysctls.empty());
  kubelet.allowed_unsafe_sysctls = {"net.core.*"};
  CHECK(chain_settings(kubelet).allowed_unsafe_sysctls == kubelet.allowed_unsafe_sysctls);
}

}  // namespace evictd::config
