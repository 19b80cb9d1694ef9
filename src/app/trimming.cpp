#include "app/trimming.hpp"

#include <utility>

#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::app {

std::unique_ptr<Trimming> Trimming::make(const asio::any_io_executor& reactor,
                                         const config::AgentConfiguration& settings, bool dry_run, const Parts& parts) {
  if (settings.eviction.trim == config::Trim::Off || dry_run) return nullptr;
  return std::unique_ptr<Trimming>(new Trimming(reactor, settings, parts));
}

Trimming::Trimming(const asio::any_io_executor& reactor, const config::AgentConfiguration& settings, const Parts& parts)
    : parts_{parts},
      worker_{reactor, "trim"},
      trimmer_{{.reactor = reactor,
                .policy = parts.policy,
                .usage = parts.usage,
                .pods = parts.pods,
                .hierarchy = parts.hierarchy,
                .clock = parts.clock,
                .wakes = parts.wakes,
                .worker = worker_,
                .node = *this,
                .log = parts.recorder,
                .proc = settings.node.proc_mount}} {
  parts.reports.tell(trimmer_);
  if (settings.eviction.trim != config::Trim::All) return;
  auto opened = api::PressureSocket::open(
      reactor, worker_, {.path = config::runtime_files(settings).pressure_socket, .proc = settings.node.proc_mount});
  if (opened)
    socket_ = *std::move(opened);
  else
    os::log_warning("eviction.trim: no program can be told that memory is short: {}", opened.error().message);
}

bool Trimming::acts() const { return parts_.evictions.acts(); }

bool Trimming::evicts() const { return parts_.evictions.under_way() > 0; }

core::Observations Trimming::look() { return parts_.reports.look(parts_.clock.now()); }

std::size_t Trimming::tell_programs() { return socket_ == nullptr ? 0 : socket_->tell(); }

}  // namespace evictd::app
