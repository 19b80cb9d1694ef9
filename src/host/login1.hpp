#pragma once

/// How logind is called on the system bus (org.freedesktop.login1(5)).
namespace evictd::host {

inline constexpr auto login1 = "org.freedesktop.login1";
inline constexpr auto login1_path = "/org/freedesktop/login1";
inline constexpr auto login1_manager = "org.freedesktop.login1.Manager";

}  // namespace evictd::host
