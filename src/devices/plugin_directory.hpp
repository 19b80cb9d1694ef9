#pragma once
#include <string>

#include "core/error.hpp"
#include "os/file_descriptor.hpp"
#include "os/unix_socket.hpp"

// The directory of the plugins' sockets. All of it waits for a disk: not for the reactor's thread.
namespace evictd::devices {

/// Makes the directory if only that is missing, removes the sockets that are in it, and listens at kubelet.sock, for
/// root alone: plugins take that for a new kubelet, and register again. What else is in the directory stays. An error
/// where somebody answers at kubelet.sock: then nothing is removed. (kubelet: CleanupPluginDirectory)
[[nodiscard]] Result<os::ListeningSocket> open_registration_socket(const std::string& directory);

/// Connects to a plugin, without waiting for it to take the connection. `name`: of a file right in the directory. Not
/// to what a symbolic link leads to.
[[nodiscard]] Result<os::FileDescriptor> connect_to_plugin(const std::string& directory, const std::string& name);

}  // namespace evictd::devices
