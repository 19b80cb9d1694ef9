#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "wake/notifier.hpp"
#include "wake/source.hpp"
#include "wake/tree_watch.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

struct PodFilesOptions {
  config::FilesNotifier by = config::FilesNotifier::Auto;  ///< not Off
  core::Duration interval = std::chrono::seconds(1);       ///< between two wake-ups
  std::vector<std::filesystem::path> roots{};              ///< below which all pods' files are
};

/// Tells when pods write, make or remove files in their volumes and logs. It only marks what to measure anew and begins
/// a pass, at most one an interval; how much was written, the measuring says.
class PodFilesWatch final : public Source {
 public:
  using OnChange = std::function<void(const std::string& uid)>;

  /// `on_change`: called with the uid of each pod that changed, before the pass.
  PodFilesWatch(boost::asio::any_io_executor reactor, Wakes& wakes, const PodFilesOptions& options, OnChange on_change);

  void arm(const Arming& arming) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  [[nodiscard]] Result<std::unique_ptr<TreeWatch>> open(boost::asio::any_io_executor reactor,
                                                        const PodFilesOptions& options);
  void changed(const std::string& uid);
  void tell();

  Notifier notifier_;
  OnChange on_change_;
  core::Duration interval_;
  boost::asio::steady_timer timer_;
  bool resting_ = false;           // since the last wake-up, for the interval
  std::set<std::string> changed_;  // meanwhile
  std::unique_ptr<TreeWatch> trees_;
  std::shared_ptr<const std::vector<PodFiles>> files_;
};

}  // namespace evictd::wake
