#include "agent/describe_kernel_oom.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <string>

#include "agent/describe.hpp"
#include "core/pod.hpp"
#include "core/printable.hpp"

namespace evictd::agent {
namespace {

/// "default/hog: the kernel killed load (pid 7) of main, which held 64.0 MiB, at the pod's own limit"
std::string kernel_oom_in_words(const KernelKill& told) {
  const auto& [pid, comm, cgroup, shortage, limited, anon, file, shmem] = told.kill;
  auto text = fmt::format("{}: the kernel killed ", told.pod->key());
  if (pid == 0)
    text += told.kills == 1 ? "a process" : fmt::format("{} processes", told.kills);
  else
    text += fmt::format("{} (pid {})", core::printable(comm), pid);
  if (pid != 0 && told.kills > 1) text += fmt::format(" and {} more", told.kills - 1);
  if (!told.container.empty()) text += fmt::format(" of {}", core::printable(told.container));
  if (anon || shmem) text += fmt::format(", which held {}", human_bytes(anon.value_or(0) + shmem.value_or(0)));
  if (told.shortage == "limit") text += ", at the pod's own limit";
  if (told.shortage == "node") text += ", for want of memory on the node";
  return text + (told.own_choice ? "; evictd's own choice" : "; not evictd's choice");
}

}  // namespace

v1::Event describe_kernel_oom(const KernelKill& kill) {
  v1::Event event;
  event.set_kind(v1::Event::KERNEL_OOM);
  *event.mutable_pod() = describe_pod(*kill.pod);
  auto& detail = *event.mutable_kernel_oom();
  detail.set_container(core::printable(kill.container));
  detail.set_process(core::printable(kill.kill.comm));
  detail.set_pid(kill.kill.pid);
  if (kill.kill.anon) detail.set_anon_bytes(*kill.kill.anon);
  if (kill.kill.file) detail.set_file_bytes(*kill.kill.file);
  if (kill.kill.shmem) detail.set_shmem_bytes(*kill.kill.shmem);
  detail.set_shortage(std::string(kill.shortage));
  detail.set_own_choice(kill.own_choice);
  detail.set_kills(kill.kills);
  event.set_message(kernel_oom_in_words(kill));
  return event;
}

}  // namespace evictd::agent
