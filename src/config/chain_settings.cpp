#include "config/chain_settings.hpp"

namespace evictd::config {

admission::ChainSettings chain_settings(const KubeletConfiguration& kubelet) {
  return {.allowed_unsafe_sysctls = kubelet.allowed_unsafe_sysctls};
}

}  // namespace evictd::config
