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

/// What a plugin answered for the one container that it was asked about. An error: it answered for none, or with more
/// than `longest_allocate_answer`.
[[nodiscard]] Result<admission::DeviceEdits> read_allocate_answer(const ::v1beta1::AllocateResponse& message);

}  // namespace evictd::devices
