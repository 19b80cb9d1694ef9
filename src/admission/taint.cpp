#include "admission/taint.hpp"

#include <algorithm>

namespace evictd::admission {
namespace {

bool covers(const core::Toleration& toleration, const core::Taint& taint) {
  const bool exists = toleration.op == "Exists";
  const bool equal = toleration.op.empty() || toleration.op == "Equal";
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (toleration.key != taint.key && !(toleration.key.empty() && exists)) return false;
  return exists || (equal && toleration.value == taint.value);
}

}  // namespace

bool tolerates(const core::Pod& pod, const core::Taint& taint) {
  return std::ranges::any_of(pod.tolerations,
                             [&](const core::Toleration& toleration) { return covers(toleration, taint); });
}

}  // namespace evictd::admission
