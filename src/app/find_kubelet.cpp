#include "app/find_kubelet.hpp"

#include <fmt/format.h>

#include <utility>

#include "app/discovery.hpp"
#include "async/deadline_thread.hpp"
#include "kube/configz.hpp"
#include "kube/credentials.hpp"
#include "kubelet/process.hpp"

namespace evictd::app {
namespace {

/// A line without its column, which stands apart from the message.
std::string line_of(const Error& error) {
  return error.column > 0 ? fmt::format("{} (column {})", error.message, error.column) : error.message;
}

Result<FoundKubelet> ask(const config::PodSourceSettings& settings) {
  if (settings.kubelet_url.empty()) return fail("thresholds.configz: podSources.kubelet.url does not say whom to ask");
  const auto credentials =
      kube::url_credentials(settings.kubelet_url, settings.kubelet_token_file, settings.kubelet_ca_file);
  if (!credentials) return fail(credentials.error(), "podSources.kubelet");
  FoundKubelet found;
  const auto answer = kube::ask_configz(*credentials, kubelet_patience);
  if (!answer) {
    found.unknown = "the kubelet does not say what it goes by: " + line_of(answer.error());
    return found;
  }
  auto sources = kubelet::parse_configz(*answer, credentials->server.url() + "/configz");
  if (sources)
    found.sources = *std::move(sources);
  else
    found.unknown = line_of(sources.error());
  return found;
}

/// A document that cannot be right is one that the kubelet went by before it was changed, or reads in another way.
FoundKubelet read(const kubelet::Process& process) {
  FoundKubelet found{.pid = process.pid, .runs = true};
  auto loaded = kubelet::load(process);
  if (!loaded)
    found.unknown = line_of(loaded.error());
  else if (!*loaded)
    found.unknown = std::move(loaded->error().why);
  else
    found.sources = **std::move(loaded);
  return found;
}

Result<FoundKubelet> read_files(const std::optional<std::string>& file, const std::optional<std::string>& drop_ins) {
  auto sources = kubelet::load_files(file, drop_ins);
  if (!sources) return std::unexpected(sources.error());
  return FoundKubelet{.sources = *std::move(sources)};
}

/// Whether it takes no kubelet's process to know what it goes by.
bool is_told(const std::optional<std::string>& named, const config::AgentConfiguration& agent) {
  return named || agent.thresholds.configz;
}

Result<FoundKubelet> told(const std::optional<std::string>& named, const config::AgentConfiguration& agent) {
  return named ? read_files(named, std::nullopt) : ask(agent.pod_sources);
}

/// By a file that is named no process in particular goes.
void add_process(FoundKubelet& found, const std::optional<kubelet::Process>& process, bool named) {
  found.runs = process.has_value();
  if (process && !named) found.pid = process->pid;
}

}  // namespace

Result<FoundKubelet> find_kubelet(const std::optional<std::string>& named, const config::AgentConfiguration& agent) {
  if (is_told(named, agent)) {
    auto found = told(named, agent);
    if (found) add_process(*found, kubelet::find_process(agent.node.proc_mount), named.has_value());
    return found;
  }
  if (const auto process = kubelet::find_process(agent.node.proc_mount)) return read(*process);
  const auto usual = find_kubelet_configuration();
  return read_files(usual, usual ? std::nullopt : kubelet::find_rancher_drop_ins());
}

Result<FoundKubelet> find_kubelet_in_time(const std::optional<std::string>& named,
                                          const config::AgentConfiguration& agent) {
  // The kubelet has as long, and its own line is the better one.
  constexpr auto patience = kubelet_patience + std::chrono::milliseconds{500};
  auto found = async::within("reading the kubelet's configuration", patience, [named, agent] {
    return is_told(named, agent) ? told(named, agent) : find_kubelet(named, agent);
  });
  if (!found)
    return FoundKubelet{.unknown =
                            "it could not be found and read in time: a disk does not answer, or there are very "
                            "many processes"};
  if (!is_told(named, agent) || !*found) return *std::move(found);
  const auto process = async::within("looking for a kubelet", patience,
                                     [proc = agent.node.proc_mount] { return kubelet::find_process(proc); });
  if (process)
    add_process(**found, *process, named.has_value());
  else
    (*found)->runs = true;  // nobody is through with the processes, of which one may be a kubelet
  return *std::move(found);
}

bool names_kubelet(const config::AgentConfiguration& agent) {
  return agent.thresholds.configz || !agent.pod_sources.kubelet_url.empty() || agent.pod_sources.api_server;
}

bool may_be_kubelets(const FoundKubelet& found, const config::AgentConfiguration& agent) {
  return found.runs || found.unknown || names_kubelet(agent);
}

}  // namespace evictd::app
