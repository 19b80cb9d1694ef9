#pragma once
#include "os/file_descriptor.hpp"

namespace testbed {

using Descriptor = evictd::os::FileDescriptor;

}  // namespace testbed
