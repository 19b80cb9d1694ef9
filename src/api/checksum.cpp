#include "api/checksum.hpp"

#include <boost/crc.hpp>

namespace evictd::api {
namespace {

template <class Number>
void put(char* target, Number number) {
  for (unsigned i = 0; i < sizeof number; ++i) target[i] = static_cast<char>(number >> (8 * i));
}

template <class Number>
Number get(const char* source) {
  Number number = 0;
  for (unsigned i = 0; i < sizeof number; ++i)
    number |= static_cast<Number>(static_cast<unsigned char>(source[i])) << (8 * i);
  return number;
}

}  // namespace

std::uint32_t checksum(std::string_view bytes, std::string_view more) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  crc.process_bytes(more.data(), more.size());
  return crc.checksum();
}

void put_32(char* target, std::uint32_t number) { put(target, number); }
void put_64(char* target, std::uint64_t number) { put(target, number); }
std::uint32_t get_32(const char* source) { return get<std::uint32_t>(source); }
std::uint64_t get_64(const char* source) { return get<std::uint64_t>(source); }

}  // namespace evictd::api
