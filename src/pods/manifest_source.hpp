#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "pods/manifest_files.hpp"
#include "pods/spec_source.hpp"

namespace evictd::pods {

struct ManifestSourceOptions {
  std::filesystem::path directory;
  std::string node_name;
  /// The kubelet's own period (fileCheckFrequency), for what inotify did not tell. Where nothing changed a look costs a
  /// stat() a file.
  core::Duration interval = std::chrono::seconds(20);
  /// Between look() and the look: writing a file makes several changes, and half of a manifest is none.
  core::Duration settle = std::chrono::milliseconds(100);
  /// For one look. A directory that takes longer is one whose disk does not answer: the source is stale until it does.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
};

/// Static pods' manifests in a directory (podSources.manifests). Files are read in the pool; look() is to be called
/// when inotify saw a change. A directory that cannot be listed, or not in time, makes the source stale, a file that
/// cannot be read is told once.
class ManifestSource final : public SpecSource {
 public:
  ManifestSource(boost::asio::any_io_executor reactor, boost::asio::any_io_executor pool,
                 ManifestSourceOptions options);

  void look() override;

 private:
  void begin() override;
  void end() override;
  void look_after(core::Duration time);
  void read();
  void finish(Result<ManifestFiles> files);

  boost::asio::any_io_executor reactor_;
  boost::asio::any_io_executor pool_;
  ManifestSourceOptions options_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<const ManifestFiles> files_ = std::make_shared<const ManifestFiles>();
  bool running_ = false;
  bool reading_ = false;                                        // in the pool
  bool hurried_ = false;                                        // the next look is due because look() was called
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is under way outlives this
};

}  // namespace evictd::pods
