#include "wake/fill_rate.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace evictd::wake {
namespace {

constexpr double gibi = 1 << 30;
/// A virtual machine whose host has yet to find the memory seems slow, until it is not.
constexpr double least = 2 * gibi;
/// Clearing pages is bound by memory channels, not by processors, on large machines.
constexpr double most = 64 * gibi;

constexpr std::size_t huge_page = 2 << 20;
constexpr std::size_t parts = 4;
constexpr std::size_t small_page = 4096;

using Clock = std::chrono::steady_clock;

double seconds_to_touch(volatile char* begin) {
  const auto start = Clock::now();
  for (std::size_t offset = 0; offset < huge_page; offset += small_page) begin[offset] = 1;
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double measure_fill_rate() {
  constexpr std::size_t size = (parts + 1) * huge_page;  // one more, to begin at a huge page
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return least;
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  auto* begin = static_cast<char*>(mapped) + (huge_page - address % huge_page) % huge_page;
  ::madvise(begin, parts * huge_page, MADV_HUGEPAGE);  // where the kernel has none, small ones do

  double rate = 0;
  for (std::size_t part = 0; part < parts; ++part)
    rate = std::max(rate, static_cast<double>(huge_page) / std::max(seconds_to_touch(begin + part * huge_page), 1e-6));
  ::munmap(mapped, size);
  return std::clamp(rate * std::max(1U, std::thread::hardware_concurrency()), least, most);
}

}  // namespace evictd::wake
