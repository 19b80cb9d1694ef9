#pragma once
#include <cstdint>
#include <string_view>

namespace evictd::os {

/// CRC-32C (Castagnoli) of both, one after the other.
[[nodiscard]] std::uint32_t checksum(std::string_view bytes, std::string_view more = {});

/// Whole numbers as files have them: little end first.
void put_32(char* target, std::uint32_t number);
void put_64(char* target, std::uint64_t number);
[[nodiscard]] std::uint32_t get_32(const char* source);
[[nodiscard]] std::uint64_t get_64(const char* source);

}  // namespace evictd::os
