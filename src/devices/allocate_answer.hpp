#pragma once
#include <cstddef>

#include "admission/device_edits.hpp"
#include "core/error.hpp"

namespace v1beta1 {
class AllocateResponse;
}

namespace evictd::devices {

/// Bytes of an answer to Allocate. It is kept for as long as the pod is there, and is part of Admit's answer.
inline constexpr std::size_t longest_allocate_answer = 128 << 10;

/// Variables, mounts, device nodes, annotations and CDI devices of it, in all. Few bytes hold thousands of them,
/// and a plugin that gives a container all of a machine's devices needs some hundreds.
inline constexpr std::size_t most_device_edits = 1024;

/// What a plugin answered for the one container that it was asked about. An error: it answered for none, or with more
/// than `longest_allocate_answer` or `most_device_edits`.
[[nodiscard]] Result<admission::DeviceEdits> read_allocate_answer(const ::v1beta1::AllocateResponse& message);

}  // namespace evictd::devices
