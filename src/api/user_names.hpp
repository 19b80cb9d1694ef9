#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "async/deadline_thread.hpp"

namespace evictd::api {

/// The users' names for their numbers, for people to read: no role hangs on them. A name service is asked beside, on a
/// thread of its own: one that hangs costs each user's first caller `patience`, and its name. Any thread.
class UserNames {
 public:
  /// Empty: there is no such user. It may block.
  using LookUp = std::function<std::string(uid_t)>;

  /// By getpwuid_r. A local file answers within a millisecond, a directory service within some ten.
  explicit UserNames(std::chrono::milliseconds patience = std::chrono::milliseconds{200});
  UserNames(std::chrono::milliseconds patience, LookUp look_up);

  /// Begins to look it up, if that was not done lately. Does not wait.
  void prepare(uid_t uid);
  /// The name; empty where there is none, or none is known `patience` after it was first asked for. Not on the reactor.
  [[nodiscard]] std::string find(uid_t uid);

 private:
  struct Known;
  std::shared_ptr<Known> known_;  // the thread shares it
  async::DeadlineThread thread_{"looking up a user's name"};
};

}  // namespace evictd::api
