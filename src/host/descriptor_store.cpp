#include "host/descriptor_store.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdlib>

namespace evictd::host {

void store_descriptor(std::string_view name, int descriptor) {
  forget_descriptor(name);
  sd_pid_notify_with_fds(0, 0, fmt::format("FDSTORE=1\nFDNAME={}", name).c_str(), &descriptor, 1);
}

void forget_descriptor(std::string_view name) { sd_notify(0, fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name).c_str()); }

InheritedDescriptors::InheritedDescriptors() {
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  for (int index = 0; index < count; ++index) {
    descriptors_.emplace(names[index], SD_LISTEN_FDS_START + index);
    std::free(names[index]);
  }
  std::free(static_cast<void*>(names));
}

InheritedDescriptors::~InheritedDescriptors() {
  for (const auto& [name, descriptor] : descriptors_) ::close(descriptor);
}

int InheritedDescriptors::take(std::string_view name) {
  const auto found = descriptors_.find(name);
  if (found == descriptors_.end()) return -1;
  const int descriptor = found->second;
  descriptors_.erase(found);
  return descriptor;
}

}  // namespace evictd::host
