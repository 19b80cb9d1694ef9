#include "descriptor_store.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "os/unix_address.hpp"
#include "testbed/failure.hpp"

namespace integration {

DescriptorStore::DescriptorStore(std::filesystem::path path)
    : path_{std::move(path)}, socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {
  if (const int error = evictd::os::bind_to(socket_.get(), path_.native())) testbed::fail_errno(path_.native(), error);
  thread_ = std::thread([this] { listen(); });
}

DescriptorStore::~DescriptorStore() {
  ends_ = true;
  thread_.join();
}

std::optional<int> DescriptorStore::stored() const {
  const std::lock_guard lock{mutex_};
  return stored_ ? std::optional(stored_->get()) : std::nullopt;
}

void DescriptorStore::listen() {
  pollfd news{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  while (!ends_)
    if (::poll(&news, 1, 20) > 0) hear();
}

void DescriptorStore::hear() {
  std::array<char, 4096> text{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto size = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return;
  const std::string_view said(text.data(), static_cast<std::size_t>(size));
  const std::lock_guard lock{mutex_};
  if (said.starts_with("FDSTOREREMOVE=1\nFDNAME=evictd-shutdown")) stored_.reset();
  const auto* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  evictd::os::FileDescriptor received{descriptor};
  if (said.starts_with("FDSTORE=1\nFDNAME=evictd-shutdown")) stored_.emplace(std::move(received));
}

}  // namespace integration
