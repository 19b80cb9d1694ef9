#include "devices/plugins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/deadline_thread.hpp"
#include "async/offload.hpp"
#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "core/rate_limit.hpp"
#include "devices/allocate_answer.hpp"
#include "devices/device_list.hpp"
#include "devices/plugin.hpp"
#include "devices/plugin_directory.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::devices {
namespace {

/// More than any node has kinds of devices.
constexpr std::size_t most_resources = 256;
/// A plugin that tells its devices again and again waits in between. Large lists take some milliseconds to read.
constexpr auto pause_between_lists = 100ms;
/// Lines in the log a minute: a plugin may come and go for ever.
constexpr std::size_t most_remarks = 20;

}  // namespace

class Plugins::Table : public std::enable_shared_from_this<Table> {
 public:
  Table(asio::any_io_executor reactor, PluginsOptions options)
      : reactor_(std::move(reactor)), options_(std::move(options)) {}

  void close();
  void leave(std::string why);
  /// Once.
  void remember(const std::set<std::string>& resources);
  void when_resources_change(std::function<void()> call) { resources_changed_ = std::move(call); }
  [[nodiscard]] const admission::DevicesByResource& devices() const { return devices_; }
  [[nodiscard]] std::set<std::string> resources() const;

  /// `before`: the plugin in whose place it is to be taken up, if that still serves the resource; null: in anybody's.
  static asio::awaitable<Result<void>> add(std::shared_ptr<Table> self, Registration registration,
                                           std::shared_ptr<Plugin> before = nullptr);

  [[nodiscard]] const PluginsOptions& options() const { return options_; }
  /// The plugin that serves the resource now, or why there is none.
  [[nodiscard]] Result<std::shared_ptr<Plugin>> find(const std::string& resource) const;
  /// As the plugin said that serves the resource, or served it last.
  [[nodiscard]] bool wants_pre_start(const std::string& resource) const;

 private:
  /// Who serves a resource; null: it has gone.
  struct Server {
    std::shared_ptr<Plugin> plugin{};
    asio::steady_timer end_of_grace;
    bool wants_pre_start = false;
  };

  /// From now on nobody is served any more, and this is why.
  void refuse_all(std::string why);
  [[nodiscard]] Result<void> check(const Registration& registration) const;
  /// `reconnected`: it is the one that served the resource before, over another connection.
  void take_up(const std::shared_ptr<Plugin>& plugin, bool reconnected);
  static asio::awaitable<void> listen(std::shared_ptr<Table> self, std::shared_ptr<Plugin> plugin);
  static asio::awaitable<void> connect_again(std::shared_ptr<Table> self, std::shared_ptr<Plugin> plugin);
  [[nodiscard]] Result<admission::DeviceGroup> read_list(const std::string& resource,
                                                         const ::v1beta1::ListAndWatchResponse& message) const;
  void told(const std::string& resource, admission::DeviceGroup group);
  void gone(const std::shared_ptr<Plugin>& plugin);
  void forget_after_grace(const std::string& resource);
  [[nodiscard]] bool is_current(const std::shared_ptr<Plugin>& plugin) const;
  template <class... Args>
  void remark(fmt::format_string<Args...> format, Args&&... args);

  asio::any_io_executor reactor_;
  PluginsOptions options_;
  async::DeadlineThread files_{"looking at the sockets of device plugins"};
  std::vector<std::weak_ptr<Plugin>> connected_{};  // also such as are not taken up yet, or were replaced
  std::map<std::string, Server, std::less<>> servers_{};
  admission::DevicesByResource devices_{};
  core::RateLimit remarks_{most_remarks};
  std::function<void()> resources_changed_{};
  std::optional<std::string> refusal_{};  // why nobody is served any more
  std::set<std::string> left_{};          // resources that were known then
};

template <class... Args>
void Plugins::Table::remark(fmt::format_string<Args...> format, Args&&... args) {
  const auto now = os::now();
  if (remarks_.closed_until(now)) return;
  remarks_.count(now);
  os::log_info("{}", fmt::format(format, std::forward<Args>(args)...));
}

void Plugins::Table::refuse_all(std::string why) {
  refusal_ = std::move(why);
  servers_.clear();
  for (const auto& weak : connected_)
    if (const auto plugin = weak.lock()) plugin->close();
}

void Plugins::Table::close() {
  resources_changed_ = nullptr;
  refuse_all("evictd shuts down");
  files_.finish();
}

void Plugins::Table::leave(std::string why) {
  left_ = resources();
  refuse_all(std::move(why));
  devices_.clear();
}

std::set<std::string> Plugins::Table::resources() const {
  auto names = left_;
  for (const auto& [resource, group] : devices_) names.insert(resource);
  return names;
}

void Plugins::Table::remember(const std::set<std::string>& resources) {
  for (const auto& resource : resources) {
    if (options_.configured.contains(resource) || servers_.size() >= most_resources) continue;
    servers_.try_emplace(resource, nullptr, asio::steady_timer{reactor_});
    told(resource, {});
    forget_after_grace(resource);
  }
}

Result<void> Plugins::Table::check(const Registration& registration) const {
  if (refusal_) return fail(*refusal_);
  if (options_.configured.contains(registration.resource))
    return fail(fmt::format("the devices of {} are named in evictd's configuration (admission.devices)",
                            registration.resource));
  if (!servers_.contains(registration.resource) && servers_.size() >= most_resources)
    return fail(fmt::format("plugins serve {} resources already, and no more are taken", most_resources));
  return {};
}

asio::awaitable<Result<void>> Plugins::Table::add(std::shared_ptr<Table> self, Registration registration,
                                                  std::shared_ptr<Plugin> before) {
  if (auto right = self->check(registration); !right) co_return std::unexpected(right.error());
  const auto workers = self->files_.get_executor();
  const auto end = os::now() + self->options_.patience;
  auto connect = [directory = self->options_.directory, name = registration.endpoint] {
    return connect_to_plugin(directory, name);
  };
  auto connection = co_await async::offload(workers, std::move(connect), end);
  if (!connection) co_return fail("failed to dial device plugin: the disk with its socket does not answer");
  if (!*connection) co_return fail((*connection).error(), "failed to dial device plugin");
  if (self->refusal_) co_return fail(*self->refusal_);

  const auto plugin = std::make_shared<Plugin>(self->reactor_, registration, *std::move(*connection));
  std::erase_if(self->connected_, [](const auto& weak) { return weak.expired(); });
  self->connected_.push_back(plugin);
  const auto options = co_await Plugin::ask_options(plugin, self->options_.patience);
  auto right = self->check(registration);  // others may have registered meanwhile
  if (right && !options) right = fail(options.error(), "failed to get device plugin options");
  if (before && !self->is_current(before)) right = fail("it has gone, or registered again");
  if (!right) {
    plugin->close();
    co_return right;
  }
  plugin->keep_options(*options);
  self->take_up(plugin, before != nullptr);
  self->remark("the device plugin at {}/{} serves {}", self->options_.directory, registration.endpoint,
               registration.resource);
  co_return Result<void>{};
}

void Plugins::Table::take_up(const std::shared_ptr<Plugin>& plugin, bool reconnected) {
  const auto& resource = plugin->resource();
  const auto [entry, is_new] = servers_.try_emplace(resource, nullptr, asio::steady_timer{reactor_});
  auto& server = entry->second;
  server.end_of_grace.cancel();
  const auto before = std::exchange(server.plugin, plugin);
  if (before && reconnected)
    before->end_lists();
  else if (before)
    before->close();
  server.wants_pre_start = plugin->options().pre_start_required();
  auto& group = devices_[resource];
  if (group == nullptr) group = std::make_shared<const admission::DeviceGroup>();
  if (is_new && resources_changed_) resources_changed_();
  const auto give_up = [self = shared_from_this(), plugin](const std::string& reason) {
    self->remark("the devices of {} cannot be followed: {}", plugin->resource(), reason);
    self->gone(plugin);
  };
  async::spawn_contained(reactor_, listen(shared_from_this(), plugin), give_up);
  async::spawn_contained(reactor_, connect_again(shared_from_this(), plugin), give_up);
}

asio::awaitable<void> Plugins::Table::listen(std::shared_ptr<Table> self, std::shared_ptr<Plugin> plugin) {
  for (;;) {
    const auto message = co_await Plugin::next_list(plugin);
    if (!message || !self->is_current(plugin)) break;
    auto group = self->read_list(plugin->resource(), *message);
    if (!group) {
      self->remark("the device plugin of {} is not listened to any more: {}", plugin->resource(),
                   group.error().message);
      break;
    }
    self->told(plugin->resource(), *std::move(group));
    co_await async::sleep(pause_between_lists);
  }
  if (self->is_current(plugin) && !plugin->is_refused()) self->gone(plugin);
}

/// A server that goes on telling its devices, but takes no calls any more, may take them over another connection. One
/// that does not has gone: nothing of its devices could be allocated.
asio::awaitable<void> Plugins::Table::connect_again(std::shared_ptr<Table> self, std::shared_ptr<Plugin> plugin) {
  co_await Plugin::until_lost(plugin);
  if (!plugin->is_refused()) co_return;  // listen() hears of it
  co_await async::sleep(pause_between_lists);
  if (!self->is_current(plugin)) co_return;
  const auto added = co_await add(self, plugin->registration(), plugin);
  if (!added) self->gone(plugin);
}

bool Plugins::Table::is_current(const std::shared_ptr<Plugin>& plugin) const {
  const auto server = servers_.find(plugin->resource());
  return server != servers_.end() && server->second.plugin == plugin;
}

/// Each list is bounded, and there may be one of every resource.
Result<admission::DeviceGroup> Plugins::Table::read_list(const std::string& resource,
                                                         const ::v1beta1::ListAndWatchResponse& message) const {
  auto group = read_devices(message);
  if (!group) return group;
  std::size_t others = 0;
  for (const auto& [name, other] : devices_)
    if (name != resource) others += other->places.size();
  if (others + group->places.size() > most_devices_of_all)
    return fail(fmt::format("there are {} devices beside {} of other resources, and at most {} are taken in all",
                            group->places.size(), others, most_devices_of_all));
  return group;
}

void Plugins::Table::told(const std::string& resource, admission::DeviceGroup group) {
  devices_[resource] = std::make_shared<const admission::DeviceGroup>(std::move(group));
}

/// (kubelet: PluginDisconnected)
void Plugins::Table::gone(const std::shared_ptr<Plugin>& plugin) {
  plugin->close();
  if (!is_current(plugin)) return;
  const auto& resource = plugin->resource();
  remark("the device plugin of {} has gone: its devices are not given to pods until it registers again", resource);
  auto group = *devices_.at(resource);
  group.healthy.clear();
  told(resource, std::move(group));
  servers_.at(resource).plugin = nullptr;
  forget_after_grace(resource);
}

void Plugins::Table::forget_after_grace(const std::string& resource) {
  auto& timer = servers_.at(resource).end_of_grace;
  timer.expires_after(options_.grace);
  timer.async_wait([weak = weak_from_this(), resource](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || self == nullptr) return;
    const auto server = self->servers_.find(resource);
    if (server == self->servers_.end() || server->second.plugin != nullptr) return;  // it had expired as one came
    self->servers_.erase(server);
    self->devices_.erase(resource);
    if (self->resources_changed_) self->resources_changed_();
  });
}

Result<std::shared_ptr<Plugin>> Plugins::Table::find(const std::string& resource) const {
  if (refusal_) return fail(*refusal_);
  const auto server = servers_.find(resource);
  if (server == servers_.end()) return fail("unknown Device Plugin " + resource);
  if (server->second.plugin == nullptr) return fail("endpoint of " + resource + " has been stopped");
  return server->second.plugin;
}

bool Plugins::Table::wants_pre_start(const std::string& resource) const {
  const auto server = servers_.find(resource);
  return server != servers_.end() && server->second.wants_pre_start;
}

Plugins::Plugins(asio::any_io_executor reactor, PluginsOptions options)
    : table_(std::make_shared<Table>(std::move(reactor), std::move(options))) {
  table_->remember(table_->options().served_before);
}

Plugins::~Plugins() { table_->close(); }

asio::awaitable<Result<void>> Plugins::add(Registration registration) {
  return Table::add(table_, std::move(registration));
}

const admission::DevicesByResource& Plugins::devices() const { return table_->devices(); }

std::set<std::string> Plugins::resources() const { return table_->resources(); }

void Plugins::when_resources_change(std::function<void()> call) { table_->when_resources_change(std::move(call)); }

void Plugins::leave(std::string why) { table_->leave(std::move(why)); }

bool Plugins::is_of_plugins(std::string_view resource) const {
  return !table_->options().configured.contains(resource) && is_resource_of_plugins(resource);
}

bool Plugins::has_preferences(std::string_view resource) const {
  const auto plugin = table_->find(std::string(resource));
  return plugin && (*plugin)->options().get_preferred_allocation_available();
}

Plugins::Awaitable<std::set<std::string>> Plugins::prefer(admission::DeviceQuestion question) {
  const auto plugin = table_->find(question.resource);
  if (!plugin) co_return std::unexpected(plugin.error());
  if (!(*plugin)->options().get_preferred_allocation_available()) co_return std::set<std::string>{};
  ::v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  container.mutable_available_deviceids()->Add(question.available.begin(), question.available.end());
  container.mutable_must_include_deviceids()->Add(question.must_include.begin(), question.must_include.end());
  container.set_allocation_size(static_cast<std::int32_t>(question.size));  // no more than there are devices
  auto answer = co_await Plugin::prefer(*plugin, std::move(request), table_->options().longest_call);
  if (!answer) co_return std::unexpected(answer.error());
  std::set<std::string> ids;
  if (!answer->container_responses().empty()) {
    const auto& preferred = answer->container_responses(0).deviceids();
    if (preferred.size() > question.size)
      co_return fail(fmt::format("{} devices are preferred, and {} were asked for", preferred.size(), question.size));
    ids.insert(preferred.begin(), preferred.end());
  }
  co_return ids;
}

Plugins::Awaitable<admission::DeviceEdits> Plugins::allocate(std::string resource, std::set<std::string> ids) {
  const auto plugin = table_->find(resource);
  if (!plugin) co_return std::unexpected(plugin.error());
  ::v1beta1::AllocateRequest request;
  request.add_container_requests()->mutable_devices_ids()->Add(ids.begin(), ids.end());
  const auto answer = co_await Plugin::allocate(*plugin, std::move(request), table_->options().longest_call);
  if (!answer) co_return std::unexpected(answer.error());
  co_return read_allocate_answer(*answer);
}

Plugins::Awaitable<void> Plugins::pre_start(std::string resource, std::set<std::string> ids) {
  if (!table_->wants_pre_start(resource)) co_return Result<void>{};
  const auto plugin = table_->find(resource);
  if (!plugin) co_return std::unexpected(plugin.error());
  ::v1beta1::PreStartContainerRequest request;
  request.mutable_devices_ids()->Add(ids.begin(), ids.end());
  const auto answer = co_await Plugin::pre_start(*plugin, std::move(request), table_->options().longest_call);
  if (!answer) co_return std::unexpected(answer.error());
  co_return Result<void>{};
}

}  // namespace evictd::devices
