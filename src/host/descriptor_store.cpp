#include "host/descriptor_store.hpp"

#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdlib>

#include "host/notifications.hpp"

namespace evictd::host {

void store_descriptor(std::string_view name, int descriptor) { notifications().store(name, descriptor); }

void forget_descriptor(std::string_view name) { notifications().forget(name); }

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
