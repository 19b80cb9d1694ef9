#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "devices/plugin_calls.hpp"

namespace evictd::agent {

/// Plugins of all resources below "example.com/", which answer as the test says; every call is remembered.
class FakePluginCalls final : public devices::PluginCalls {
 public:
  [[nodiscard]] bool is_of_plugins(std::string_view resource) const override {
    return resource.starts_with("example.com/");
  }
  [[nodiscard]] bool has_preferences(std::string_view) const override { return has_wishes; }
  Awaitable<std::set<std::string>> prefer(admission::DeviceQuestion question) override {
    calls.push_back("prefer for " + question.container + " of" + joined(question.available));
    if (failing == "prefer") co_return fail("no");
    co_return preferred;
  }
  Awaitable<admission::DeviceEdits> allocate(std::string resource, std::set<std::string> ids) override {
    calls.push_back("allocate" + joined(ids));
    boost::asio::steady_timer soon{co_await boost::asio::this_coro::executor};
    while (is_held) {
      soon.expires_after(std::chrono::milliseconds{1});
      co_await soon.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    if (failing == "allocate") co_return fail("no");
    admission::DeviceEdits edits{.environment = {{resource, joined(ids)}}};
    if (!filling.empty()) edits.environment["FILLING"] = filling;
    co_return edits;
  }
  Awaitable<void> pre_start(std::string, std::set<std::string> ids) override {
    calls.push_back("start" + joined(ids));
    if (failing == "start") co_return fail("no");
    co_return Result<void>{};
  }

  std::vector<std::string> calls;
  bool has_wishes = true;
  std::set<std::string> preferred;
  std::string failing;
  std::string filling;   ///< what Allocate's answers have besides
  bool is_held = false;  ///< devices are not allocated before that ends

 private:
  static std::string joined(const std::set<std::string>& ids) {
    std::string result;
    for (const auto& id : ids) result += " " + id;
    return result;
  }
};

}  // namespace evictd::agent
