#pragma once
#include <optional>
#include <string>

namespace testbed {

/// What a testbed needs and this machine lacks: root, the cgroup controllers, a program. Nothing when all is there.
[[nodiscard]] std::optional<std::string> missing_prerequisite();

}  // namespace testbed
