#include "config/fields.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::config::fields_test {
namespace {

using fixture::error_of;
using fixture::value_of;

struct Inner {
  std::string name{};
};

struct Outer {
  bool flag = false;
  std::int32_t number = 0;
  std::optional<core::Duration> wait{};
  core::Quantity size{};
  std::vector<std::string> words{};
  std::map<std::string, core::Quantity, std::less<>> sizes{};
  std::vector<Inner> inner{};
  std::optional<Value> later{};
};

Result<void> read_inner(const Value& value, Inner& target) {
  static constexpr Field<Inner> fields[]{{"name", into<&Inner::name>}};
  return read_fields(value, target, fields, UnknownKeys::reject);
}

constexpr Field<Outer> fields[]{{"flag", into<&Outer::flag>},
                                {"number", into<&Outer::number>},
                                {"wait", into<&Outer::wait>},
                                {"size", into<&Outer::size, read_amount>},
                                {"words", into<&Outer::words>},
                                {"sizes", into<&Outer::sizes>},
                                {"inner", into<&Outer::inner, read_list<read_inner, Inner>>},
                                {"later", keep<&Outer::later>}};

Result<Outer> outer(std::string_view text, UnknownKeys unknown = UnknownKeys::reject) {
  Outer result;
  const auto document = value_of(parse_yaml(text, "a.yaml"));
  if (auto read = read_fields(document, result, fields, unknown); !read) return std::unexpected(read.error());
  return result;
}

}  // namespace

TEST_CASE("every kind of member is read from its key") {
  const auto read = value_of(outer(R"(
flag: true
number: -3
wait: 1m30s
size: 1Gi
words: [a, b]
sizes: {example.org/gpu: 2}
inner: [{name: x}, {name: y}]
later: {any: thing}
)"));
  CHECK(read.flag);
  CHECK(read.number == -3);
  CHECK(read.wait == std::chrono::seconds(90));
  CHECK(read.size.value() == 1 << 30);
  CHECK(read.words == std::vector<std::string>{"a", "b"});
  CHECK(read.sizes.at("example.org/gpu").value() == 2);
  REQUIRE(read.inner.size() == 2);
  CHECK(read.inner[1].name == "y");
  REQUIRE(read.later.has_value());
  CHECK(read.later->path() == "later");
}

TEST_CASE("an absent or null key leaves its member as it is") {
  const auto read = value_of(outer("number: ~\n"));
  CHECK(read.number == 0);
  CHECK_FALSE(read.wait.has_value());
}

TEST_CASE("an unknown key is passed over or rejected, as the reader says") {
  CHECK(outer("extra: 1", UnknownKeys::pass_over).has_value());
  CHECK(error_of(outer("nmuber: 1")) == "a.yaml:1: nmuber: unknown key; did you mean \"number\"?");
  CHECK(error_of(outer("quite-another-thing: 1")) ==
        "a.yaml:1: quite-another-thing: unknown key; those known here are flag, number, wait, size, words, sizes, "
        "inner, later");
  CHECK(error_of(outer("inner: [{name: x}, {neme: y}]")) ==
        "a.yaml:1: inner[1].neme: unknown key; did you mean \"name\"?");
}

TEST_CASE("a value of the wrong kind is an error at its place") {
  CHECK(error_of(outer("flag: 3")) == "a.yaml:1: flag: \"3\" is not true or false");
  CHECK(error_of(outer("number: 3000000000")) ==
        "a.yaml:1: number: \"3000000000\" is out of range: -2147483648 to 2147483647");
  CHECK(error_of(outer("size: -1")) == "a.yaml:1: size: \"-1\" must not be negative");
  CHECK(error_of(outer("words: a")) == "a.yaml:1: words: \"a\" stands where a list is expected");
  CHECK(error_of(outer("sizes: {example.org/gpu: x}")) ==
        "a.yaml:1: sizes: example.org/gpu: \"x\" is not a quantity such as 150Mi, 1.5G or 500");
  CHECK(error_of(outer("- 1")) == "a.yaml:1: a list stands where a mapping is expected");
}

}  // namespace evictd::config::fields_test
