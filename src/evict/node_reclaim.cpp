#include "evict/node_reclaim.hpp"

#include <api.pb.h>
#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "cri/reply.hpp"
#include "evict/unused.hpp"
#include "os/now.hpp"
#include "pods/verbose_status.hpp"

namespace asio = boost::asio;

namespace evictd::evict {
namespace {

namespace v1 = cri::v1;
using cri::Failure;

using os::now;

/// For messages: what an operator knows it by.
const std::string& name_of(const v1::Image& image) {
  if (!image.repo_tags().empty()) return image.repo_tags(0);
  return image.repo_digests().empty() ? image.id() : image.repo_digests(0);
}

/// Those of the images that have these ids, in the order of the ids.
std::vector<v1::Image> picked(const v1::ListImagesResponse& images, const std::vector<std::string>& ids) {
  std::map<std::string_view, const v1::Image*> by_id;
  for (const auto& image : images.images()) by_id.emplace(image.id(), &image);
  std::vector<v1::Image> result;
  for (const auto& id : ids)
    if (const auto image = by_id.find(id); image != by_id.end()) result.push_back(*image->second);
  return result;
}

}  // namespace

struct NodeReclaimer::Run {
  core::Instant give_up;
  core::Duration time_limit;
  ReclaimResult result{};
  bool ended = false;

  void failed(const cri::CallError& error, std::string_view what) {
    result.errors.push_back(error.error.in(what));
    // Without a runtime every other call would fail as well.
    ended = ended || error.failure == Failure::Unavailable || error.failure == Failure::Cancelled;
  }

  /// Counts a removal. What the runtime does not know is gone, but not by us.
  template <class Response>
  void count(const cri::Reply<Response>& removed, std::size_t& counter, std::string_view what) {
    if (removed)
      ++counter;
    else if (removed.error().failure != Failure::NotFound)
      failed(removed.error(), what);
  }

  /// To be asked before each removal.
  [[nodiscard]] bool goes_on() {
    if (!ended && now() >= give_up) {
      ended = true;
      result.errors.push_back(
          Error{fmt::format("node-level reclaim is not done after {}; what remains waits for the next one",
                            core::to_string(time_limit))});
    }
    return !ended;
  }
};

asio::awaitable<ReclaimResult> NodeReclaimer::run(bool containers, bool images) {
  const auto reactor = co_await asio::this_coro::executor;
  while (const auto earlier = under_way_) co_await End::wait(earlier);
  const auto end = under_way_ = std::make_shared<End>(reactor, core::Instant::max());
  Run run{.give_up = now() + options_.time_limit, .time_limit = options_.time_limit};
  if (containers) {
    co_await remove_containers(run);
    co_await remove_sandboxes(run);
    co_await remove_logs_of_gone_pods(run);
  }
  if (images) co_await remove_images(run);
  under_way_.reset();
  end->abandon();
  co_return std::move(run.result);
}

asio::awaitable<void> NodeReclaimer::remove_containers(Run& run) {
  constexpr std::string_view purpose = "cannot look for unused containers";
  const auto containers = co_await runtime_.list_containers();
  if (!containers) co_return run.failed(containers.error(), purpose);
  const auto sandboxes = co_await runtime_.list_pod_sandboxes();
  if (!sandboxes) co_return run.failed(sandboxes.error(), purpose);

  for (const auto& container : unused_containers(*containers, *sandboxes)) {
    if (!run.goes_on()) co_return;
    // Before the container, as the kubelet does it: who is killed in between begins anew with a container that is
    // there.
    if (logs_ != nullptr) {
      const auto log = co_await logs_->remove_log_of(container, *sandboxes, run.give_up);
      if (!log)
        run.result.errors.push_back(log.error().in(
            fmt::format("cannot remove the log of container {} ({})", container.metadata().name(), container.id())));
    }
    const auto removed = co_await runtime_.remove_container(container.id());
    run.count(removed, run.result.containers_removed,
              fmt::format("cannot remove container {} ({})", container.metadata().name(), container.id()));
  }
}

asio::awaitable<void> NodeReclaimer::remove_sandboxes(Run& run) {
  if (run.ended) co_return;
  constexpr std::string_view purpose = "cannot look for dead sandboxes";
  const auto sandboxes = co_await runtime_.list_pod_sandboxes();
  if (!sandboxes) co_return run.failed(sandboxes.error(), purpose);
  const auto containers = co_await runtime_.list_containers();
  if (!containers) co_return run.failed(containers.error(), purpose);

  for (const auto& id : unused_sandboxes(*sandboxes, *containers)) {
    if (!run.goes_on()) co_return;
    co_await remove_sandbox(run, id);
  }
}

/// A sandbox that died by itself still holds its network; only the stop lets go of it. (kubelet: removeSandbox)
asio::awaitable<void> NodeReclaimer::remove_sandbox(Run& run, std::string id) {
  const auto stopped = co_await runtime_.stop_pod_sandbox(id);
  if (!stopped && stopped.error().failure != Failure::NotFound)
    co_return run.failed(stopped.error(), fmt::format("cannot stop dead sandbox {}", id));
  const auto removed = co_await runtime_.remove_pod_sandbox(id);
  run.count(removed, run.result.sandboxes_removed, fmt::format("cannot remove dead sandbox {}", id));
}

asio::awaitable<void> NodeReclaimer::remove_logs_of_gone_pods(Run& run) {
  if (logs_ == nullptr || !run.goes_on()) co_return;
  auto errors = co_await logs_->remove_gone(run.give_up);
  for (auto& error : errors) run.result.errors.push_back(std::move(error));
}

/// What cannot be looked at now is at the next look; a reclaim says what it could not.
asio::awaitable<void> NodeReclaimer::observe_logs() {
  if (logs_ == nullptr) co_return;
  static_cast<void>(co_await logs_->look());
}

asio::awaitable<void> NodeReclaimer::remove_images(Run& run) {
  if (!run.goes_on()) co_return;
  constexpr std::string_view purpose = "cannot look for unused images";
  const auto begun = now();
  const auto images = co_await runtime_.list_images();
  if (!images) co_return run.failed(images.error(), purpose);
  const auto containers = co_await runtime_.list_containers();
  if (!containers) co_return run.failed(containers.error(), purpose);
  const auto volumes_known = co_await learn_volumes(run, *containers);
  if (!volumes_known) co_return;
  note(*images, *containers, begun);
  const auto candidates = picked(*images, ages_.may_go(begun, options_.minimum_image_age));

  const auto sandbox_image = co_await sandbox_image_id();
  if (!sandbox_image) {
    run.result.errors.push_back(sandbox_image.error().in("no image is removed, for one of them may be the sandboxes'"));
    co_return;
  }
  for (const auto& image : candidates) {
    if (image.pinned() || image.id() == *sandbox_image) continue;
    if (!run.goes_on()) co_return;
    co_await remove_image_if_unused(run, image);
  }
}

/// Asks for the containers once more: the removals before this one may have taken seconds. The runtime would remove the
/// image of a container that is just being made, and its kubelet could not start the container again.
asio::awaitable<void> NodeReclaimer::remove_image_if_unused(Run& run, const Image& image) {
  const auto what = fmt::format("cannot remove image {}", name_of(image));
  const auto containers = co_await runtime_.list_containers();
  if (!containers) co_return run.failed(containers.error(), what);
  const auto volumes_known = co_await learn_volumes(run, *containers);
  if (!volumes_known || used_by(*containers)(image)) co_return;
  // By its id: that takes all its names. Layers that other images or containers share stay for them.
  const auto removed = co_await runtime_.remove_image(image.id());
  if (removed) ages_.forget(image.id());
  run.count(removed, run.result.images_removed, what);
}

/// Empty if the runtime names none (containerd 2.0 pins it) or has not pulled it.
asio::awaitable<Result<std::string>> NodeReclaimer::sandbox_image_id() {
  const auto status = co_await runtime_.status();
  if (!status) co_return std::unexpected(status.error().error);
  const auto config = status->info().find("config");
  if (config == status->info().end()) co_return std::string{};
  const auto info = pods::parse_runtime_info(config->second);
  if (!info) co_return fail(info.error(), runtime_.endpoint() + ": Status");
  if (info->sandbox_image.empty()) co_return std::string{};

  // The configured name may be short, or a digest: the runtime knows which image it means.
  const auto image = co_await runtime_.image_status(info->sandbox_image);
  if (image) co_return image->image().id();
  if (image.error().failure == Failure::NotFound) co_return std::string{};
  co_return std::unexpected(image.error().error);
}

asio::awaitable<Result<void>> NodeReclaimer::observe_images() {
  const auto begun = now();
  const auto images = co_await runtime_.list_images();
  if (!images) co_return fail(images.error().error, "cannot observe the images");
  const auto containers = co_await runtime_.list_containers();
  if (!containers) co_return fail(containers.error().error, "cannot observe the images");
  note(*images, *containers, begun);
  co_return Result<void>{};
}

/// False: it cannot be told which images are in use, so none may go, neither this one nor the next. (kubelet 1.36:
/// detectImages fails as a whole)
asio::awaitable<bool> NodeReclaimer::learn_volumes(Run& run, const v1::ListContainersResponse& containers) {
  for (const auto& id : volumes_.to_ask(containers)) {
    if (!run.goes_on()) co_return false;
    const auto status = co_await runtime_.plain_container_status(id);
    if (status) {
      volumes_.learn(id, status->status());
    } else if (status.error().failure != Failure::NotFound) {
      run.failed(status.error(), fmt::format("images stay, for container {} may have them mounted", id));
      run.ended = true;
      co_return false;
    }
  }
  co_return true;
}

NodeReclaimer::IsUsed NodeReclaimer::used_by(const v1::ListContainersResponse& containers) const {
  return [&containers, mounted = volumes_.mounted_by(containers)](const Image& image) {
    return is_used(image, containers, mounted);
  };
}

void NodeReclaimer::note(const v1::ListImagesResponse& images, const v1::ListContainersResponse& containers,
                         core::Instant begun) {
  const auto used = used_by(containers);
  std::vector<core::SeenImage> seen;
  for (const auto& image : images.images()) seen.push_back({.id = image.id(), .used = used(image)});
  ages_.note(seen, begun);
}

}  // namespace evictd::evict
