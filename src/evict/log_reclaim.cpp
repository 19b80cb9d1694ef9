#include "evict/log_reclaim.hpp"

#include <api.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "async/awaited.hpp"
#include "async/next_turn.hpp"
#include "core/printable.hpp"
#include "cri/reply.hpp"
#include "evict/pod_logs.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::evict {
namespace {

using PodUids = std::set<std::string, std::less<>>;

/// A disk, or a unit, that forbids one removal forbids the next one as well.
bool forbids_all(int code) { return code == EROFS || code == ENOSYS || code == EPERM; }

/// One line, whatever the names in it are.
Error printable(const Error& error) { return {core::printable(error.message)}; }

std::string pod_directory_of(const cri::v1::Container& container, const cri::v1::ListPodSandboxResponse& sandboxes) {
  for (const auto& sandbox : sandboxes.items()) {
    const auto& pod = sandbox.metadata();
    if (sandbox.id() == container.pod_sandbox_id() && !pod.uid().empty())
      return fmt::format("{}_{}_{}", pod.namespace_(), pod.name(), pod.uid());
  }
  return {};
}

/// Of a pod whose own uid has underlines the directory's name does not tell where it begins.
bool is_listed(std::string_view directory, const PodUids& listed) {
  for (auto line = directory.find('_'); line != std::string_view::npos; line = directory.find('_', line + 1))
    if (const auto uid = directory.substr(line + 1); !uid.empty() && listed.contains(uid)) return true;
  return false;
}

}  // namespace

LogReclaimer::LogReclaimer(asio::any_io_executor reactor, cri::Client& runtime, std::unique_ptr<async::Worker> worker,
                           std::filesystem::path root, IsKnown is_known, LogReclaimerOptions options)
    : reactor_{std::move(reactor)},
      runtime_{runtime},
      worker_{std::move(worker)},
      root_{std::move(root)},
      is_known_{std::move(is_known)},
      options_{options} {}

Error LogReclaimer::no_answer() const {
  return {fmt::format("{}: its disk does not answer in time: logs stay", root_.native())};
}

/// Null where the disk does not answer in time; until it has, it is asked for nothing else. The result is never moved:
/// GCC 12 freed the string of an error twice that was moved into an optional here. It is built with an option against
/// that (meson.build); whether later ones do so is not known.
template <class Work>
asio::awaitable<std::unique_ptr<std::invoke_result_t<Work>>> LogReclaimer::on_disk(Work work, core::Instant end) {
  using Value = std::invoke_result_t<Work>;
  struct Given {
    std::unique_ptr<Value> value;
    bool late = false;
  };
  if (hanging_ > 0) co_return nullptr;
  const auto given = std::make_shared<Given>();
  const auto awaited = std::make_shared<async::Awaited<bool>>(reactor_, end);
  worker_->run([given, work = std::move(work)]() mutable { given->value.reset(new Value(work())); },
               [this, given, awaited] {
                 if (given->late) --hanging_;
                 awaited->deliver(true);
               });
  const auto answered = co_await async::Awaited<bool>::wait(awaited);
  if (!answered) {
    given->late = true;
    ++hanging_;
    co_return nullptr;
  }
  co_return std::move(given->value);
}

/// Uids, of sandboxes in any state and of containers that have lost theirs.
asio::awaitable<Result<PodUids>> LogReclaimer::listed_pods() {
  constexpr std::string_view purpose = "cannot look for logs of pods that are gone";
  const auto sandboxes = co_await runtime_.list_pod_sandboxes();
  if (!sandboxes) co_return fail(sandboxes.error().error, purpose);
  const auto containers = co_await runtime_.list_containers();
  if (!containers) co_return fail(containers.error().error, purpose);
  PodUids uids;
  for (const auto& sandbox : sandboxes->items()) uids.insert(sandbox.metadata().uid());
  for (const auto& container : containers->containers()) {
    const auto uid = container.labels().find("io.kubernetes.pod.uid");
    if (uid != container.labels().end()) uids.insert(uid->second);
  }
  co_return uids;
}

/// The directories before the pods: one that is made in between is not looked at, and one whose pod has come in between
/// is that of a pod which is listed.
asio::awaitable<Result<void>> LogReclaimer::look() {
  auto list = [root = root_] { return log_directories(root); };
  const auto directories = co_await on_disk(std::move(list), os::now() + options_.patience);
  if (!directories) co_return std::unexpected(no_answer());
  if (!*directories) co_return std::unexpected(printable(directories->error()));
  const auto listed = co_await listed_pods();
  if (!listed) co_return std::unexpected(listed.error());
  const auto time = os::now();
  std::map<std::string, core::Instant, std::less<>> gone;
  constexpr std::size_t in_a_turn = 200;
  std::size_t looked_at = 0;
  for (const auto& name : **directories) {
    if (++looked_at % in_a_turn == 0) co_await async::next_turn(reactor_);
    if (is_listed(name, *listed) || is_known_(uid_of_log_directory(name))) continue;
    const auto known = gone_since_.find(name);
    gone.emplace(name, known == gone_since_.end() ? time : known->second);
  }
  gone_since_ = std::move(gone);
  co_return Result<void>{};
}

asio::awaitable<Result<void>> LogReclaimer::remove_log_of(const cri::v1::Container& container,
                                                          const cri::v1::ListPodSandboxResponse& sandboxes,
                                                          core::Instant give_up) {
  const auto directory = pod_directory_of(container, sandboxes);
  if (directory.empty()) co_return Result<void>{};
  const auto attempt = container.metadata().attempt();
  const auto status = co_await runtime_.container_status(container.id());
  if (!status && status.error().failure == cri::Failure::NotFound) co_return Result<void>{};
  if (!status) co_return std::unexpected(status.error().error);
  auto log = locate_log(root_, directory, attempt, status->status().log_path());
  if (!log) co_return Result<void>{};
  auto remove = [root = root_, log = *std::move(log)] { return remove_log(root, log); };
  const auto removed = co_await on_disk(std::move(remove), std::min(give_up, os::now() + options_.patience));
  if (!removed) co_return std::unexpected(no_answer());
  if (removed->error) co_return std::unexpected(printable(*removed->error));
  co_return Result<void>{};
}

asio::awaitable<std::vector<Error>> LogReclaimer::remove_gone(core::Instant give_up) {
  std::vector<Error> errors;
  const auto looked = co_await look();
  if (!looked) {
    errors.push_back(looked.error());
    co_return errors;
  }
  constexpr std::size_t most_told = 5;
  const auto gone = gone_since_;
  std::size_t directories = 0;
  for (const auto& [name, since] : gone) {
    const auto time = os::now();
    if (time >= give_up || errors.size() >= most_told) break;
    // Its pod may have come back while others were removed.
    if (time - since < options_.gone_for || is_known_(uid_of_log_directory(name))) continue;
    const auto end = std::min(give_up, time + options_.longest);
    auto remove = [root = root_, directory = name, end] { return remove_log_directory(root, directory, end); };
    const auto removed = co_await on_disk(std::move(remove), end + options_.patience);
    if (!removed) {
      errors.push_back(no_answer());
      break;
    }
    if (!removed->error) {
      gone_since_.erase(name);
      ++directories;
      continue;
    }
    errors.push_back(printable(*removed->error));
    if (forbids_all(removed->error->code)) break;
  }
  if (directories > 0) os::log_info("node reclaim: removed the logs of {} pods that are gone", directories);
  co_return errors;
}

}  // namespace evictd::evict
