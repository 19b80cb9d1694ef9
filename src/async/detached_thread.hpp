#pragma once
#include <functional>
#include <string>

namespace evictd::async {

/// Runs `work` on a thread that is never joined and that takes no signals: they are for the thread that runs the
/// reactor. It may outlive the part that started it, so `work` owns what it uses. `name`: as ps(1) shows it, at most 15
/// characters. Throws std::system_error where no thread can be had.
void detach_thread(const std::string& name, std::move_only_function<void()> work);

}  // namespace evictd::async
