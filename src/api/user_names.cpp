#include "api/user_names.hpp"

#include <pwd.h>

#include <array>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace evictd::api {
namespace {

using Clock = std::chrono::steady_clock;

/// A user that was renamed is called so after a while.
constexpr auto longest_age = std::chrono::minutes{5};
/// More users than these hardly call at a time; a name service that hangs gets no more questions than these.
constexpr std::size_t most_known = 256;

std::string ask_name_service(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return "";
  return entry.pw_name;
}

}  // namespace

struct UserNames::Known {
  struct Entry {
    Clock::time_point asked{};  // when the question under way began, or the last one
    bool is_asked = false;      // a question is under way
    std::optional<std::string> name{};
  };

  Known(std::chrono::milliseconds patience, LookUp look_up) : patience{patience}, look_up{std::move(look_up)} {}

  /// Whether to ask the name service. Under the lock.
  bool begin(uid_t uid, Clock::time_point now) {
    if (!entries.contains(uid) && entries.size() >= most_known) {
      std::erase_if(entries, [](const auto& entry) { return !entry.second.is_asked; });
      if (entries.size() >= most_known) return false;
    }
    auto& entry = entries[uid];
    if (entry.is_asked || (entry.name && now - entry.asked < longest_age)) return false;
    entry.is_asked = true;
    entry.asked = now;
    return true;
  }

  void answer(uid_t uid) {
    auto name = look_up(uid);
    const std::lock_guard lock{mutex};
    auto& entry = entries[uid];
    entry.is_asked = false;
    entry.name = std::move(name);
    answered.notify_all();
  }

  const std::chrono::milliseconds patience;
  const LookUp look_up;
  std::mutex mutex;
  std::condition_variable answered;
  std::unordered_map<uid_t, Entry> entries;
};

UserNames::UserNames(std::chrono::milliseconds patience) : UserNames{patience, &ask_name_service} {}

UserNames::UserNames(std::chrono::milliseconds patience, LookUp look_up)
    : known_{std::make_shared<Known>(patience, std::move(look_up))} {}

void UserNames::prepare(uid_t uid) {
  const std::lock_guard lock{known_->mutex};
  if (known_->begin(uid, Clock::now()))
    boost::asio::post(thread_.get_executor(), [known = known_, uid] { known->answer(uid); });
}

std::string UserNames::find(uid_t uid) {
  prepare(uid);
  std::unique_lock lock{known_->mutex};
  const auto found = known_->entries.find(uid);
  if (found == known_->entries.end()) return "";
  const auto until = found->second.asked + known_->patience;
  const auto is_known = [&] { return known_->entries.contains(uid) && known_->entries.at(uid).name.has_value(); };
  if (!known_->answered.wait_until(lock, until, is_known)) return "";
  return *known_->entries.at(uid).name;
}

}  // namespace evictd::api
