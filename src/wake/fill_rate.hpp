#pragma once

namespace evictd::wake {

/// Bytes a second: as fast as all processors together could take memory, 2 to 64 GiB/s.
///
/// One processor takes 8 MiB of anonymous memory, in huge pages where the kernel has them to give, and the quickest of
/// four parts counts for each processor. That takes some milliseconds, and everything is given back at once. Without
/// memory to measure with it is the least.
[[nodiscard]] double measure_fill_rate();

}  // namespace evictd::wake
