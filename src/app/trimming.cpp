#include "app/trimming.hpp"

#include <utility>

#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::app {

std::unique_ptr<Trimming> Trimming::make(const asio::any_io_executor& reactor,
                                         const config::AgentConfiguration& settings, bool dry_run, const Parts& parts) {
  if (settings.eviction.trim == config::Trim::Off || dry_run) return nullptr;
  auto made = std::unique_ptr<Trimming>(new Trimming(reactor));
  if (settings.eviction.trim == config::Trim::All) {
    auto opened = api::PressureSocket::open(
        reactor, made->worker_,
        {.path = config::runtime_files(settings).pressure_socket, .proc = settings.node.proc_mount});
    if (opened)
      made->socket_ = *std::move(opened);
    else
      os::log_warning("eviction.trim: no program can be told that memory is short: {}", opened.error().message);
  }
  agent::Trimmer::Parts trimmer{.policy = parts.policy,
                                .usage = parts.usage,
                                .pods = parts.pods,
                                .hierarchy = parts.hierarchy,
                                .clock = parts.clock,
                                .wakes = parts.wakes,
                                .worker = made->worker_,
                                .proc = settings.node.proc_mount};
  trimmer.may_act = [&evictions = parts.evictions] { return evictions.acts() && evictions.under_way() == 0; };
  trimmer.look = [&reports = parts.reports, &clock = parts.clock] { return reports.look(clock.now()); };
  trimmer.report = [&recorder = parts.recorder](const agent::TrimReport& report) { recorder.trimmed(report); };
  if (made->socket_ != nullptr) trimmer.tell_programs = [socket = made->socket_.get()] { return socket->tell(); };
  made->trimmer_.emplace(std::move(trimmer));
  return made;
}

}  // namespace evictd::app
