#include "prekill/varlink_message.hpp"

#include <doctest/doctest.h>

#include <string>

#include "core/printable.hpp"
#include "fixture/result.hpp"

namespace evictd::prekill::varlink_message_test {
namespace {

using fixture::error_of;
using fixture::value_of;

}  // namespace

TEST_CASE("a hook is called as systemd-oomd calls it: the method, the cgroup, a NUL byte, and nothing else") {
  std::string expected = R"({"method":"io.systemd.oom.Prekill.Notify","parameters":{"cgroup":"/kubepods/pod1"}})";
  expected += '\0';
  CHECK(value_of(notify_call("/kubepods/pod1")) == expected);
  const auto odd = value_of(notify_call("/a\"b\\c\n"));
  CHECK(odd.find(R"("/a\"b\\c\n")") != std::string::npos);
  CHECK(error_of(notify_call("/a\xff")) == "the path of its cgroup is no UTF-8");
}

TEST_CASE("any answer without an error says that a hook has done its part") {
  for (const auto* text : {"{}", R"({"parameters":{}})", R"({"parameters":{"more":[1,2]},"unknown":1})",
                           R"({"error":null,"parameters":null})", R"({"continues":false})"}) {
    CAPTURE(text);
    CHECK(error_of(read_notify_answer(text)) == "no error");
  }
}

TEST_CASE("what is no such answer is told in one line") {
  CHECK(error_of(read_notify_answer(R"({"error":"org.varlink.service.MethodNotFound","parameters":{}})")) ==
        "it failed: org.varlink.service.MethodNotFound");
  CHECK(error_of(read_notify_answer("{\"error\":\"a\\nb\"}")) == "it failed: a\\nb");
  CHECK(error_of(read_notify_answer(R"({"error":""})")) == "its answer's error is no name");
  CHECK(error_of(read_notify_answer(R"({"error":1})")) == "its answer's error is no name");
  CHECK(error_of(read_notify_answer(R"({"continues":true})")) ==
        "it answers that more is to come, which was not asked for");
  CHECK(error_of(read_notify_answer(R"({"parameters":1})")) == "its answer's parameters are no object");
  CHECK(error_of(read_notify_answer("[]")) == "its answer is no object");
  for (const auto& text : {std::string(), std::string("x"), std::string("{"), std::string("{} {}"),
                           std::string("\xff\xfe"), std::string(10'000, '[')}) {
    CAPTURE(text);
    CHECK(error_of(read_notify_answer(text)) == "its answer is not JSON");
  }
}

TEST_CASE("an error's name may be long and hostile: what is told of it is short and printable") {
  const auto error = error_of(read_notify_answer(R"({"error":")" + std::string(50'000, 'x') + R"("})"));
  CHECK(error.size() < 400);
  const auto wild = error_of(read_notify_answer("{\"error\":\"\\u202e\\u001b[2J\"}"));
  CHECK(core::printable(wild) == wild);
}

TEST_CASE("answers are put together from pieces of any size, and what comes after one stays for the next") {
  const std::string bytes("one\0two\0thr", 11);
  for (const std::size_t size : {1U, 2U, 3U, 11U}) {
    VarlinkReader reader;
    std::string all;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      reader.add(std::string_view(bytes).substr(at, size));
      for (auto next = value_of(reader.next()); next; next = value_of(reader.next())) all += *next + ";";
    }
    CHECK(all == "one;two;");
  }
}

TEST_CASE("an answer that does not end is an error once it is too long") {
  VarlinkReader reader;
  const std::string piece(4096, 'x');
  for (std::size_t size = 0; size < VarlinkReader::longest_answer; size += piece.size()) {
    reader.add(piece);
    CHECK_FALSE(value_of(reader.next()).has_value());
  }
  reader.add("x");
  CHECK(error_of(reader.next()) == "its answer has more than 65536 bytes");
}

}  // namespace evictd::prekill::varlink_message_test
