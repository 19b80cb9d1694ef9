#include "core/printable.hpp"

#include <doctest/doctest.h>

namespace evictd::core::printable_test {

TEST_CASE("nothing in a name can move the cursor, write lines or turn the direction of writing") {
  CHECK(printable("default/bloat") == "default/bloat");
  CHECK(printable("name\nevictd: forged") == "name\\nevictd: forged");
  CHECK(printable("a\nb\rc\td") == "a\\nb\\rc\\td");
  CHECK(printable("\x1b[31mred\x7f") == "\\x1b[31mred\\x7f");
  CHECK(printable(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\xc2\x9b"
                  "1m") == "\\u009b1m");  // CSI as one character
  CHECK(printable("\xe2\x80\xae"
                  "cod") == "\\u202ecod");        // right-to-left override
  CHECK(printable("\xe2\x80\xa8") == "\\u2028");  // line separator
}

TEST_CASE("letters of all languages stay as they are, bytes that are no UTF-8 are shown as such") {
  CHECK(printable("Größe 大 😀") == "Größe 大 😀");
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable("\xc3") == "\\xc3");                             // cut off
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // overlong
  CHECK(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");           // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST_CASE("the first byte that is no UTF-8 is found") {
  CHECK(valid_utf8("") == 0);
  CHECK(valid_utf8("Größe 大 😀") == std::string_view("Größe 大 😀").size());
  CHECK(valid_utf8("a\xff") == 1);
  CHECK(valid_utf8("ab\xc3") == 2);
  CHECK(valid_utf8("\xed\xa0\x80") == 0);
}

TEST_CASE("a text is cut between characters") {
  CHECK(beginning("Größe", 7) == "Größe");
  CHECK(beginning("Größe", 6) == "Größ");
  CHECK(beginning("Größe", 3) == "Gr");
  CHECK(beginning("大", 2) == "");
  CHECK(beginning("\x80\x80", 1) == "");
}

TEST_CASE("what takes nothing but printable ASCII gets it, and no more than it takes") {
  CHECK(printable_ascii("node-7 ~", 128) == "node-7 ~");
  CHECK(printable_ascii("a\nb\x7f\xff", 128) == "a?b??");
  CHECK(printable_ascii("Größe", 4) == "Gr??");
  CHECK(printable_ascii(std::string_view("\0", 1), 128) == "?");
  CHECK(printable_ascii("", 128).empty());
}

TEST_CASE("of a long text a message repeats the beginning, whatever it becomes when it is made printable") {
  CHECK(excerpt("a\nb", 4) == "a\\nb");
  CHECK(excerpt("a\nbc", 4) == "a\\nb…");
  CHECK(excerpt("größer", 4) == "grö…");
  CHECK(excerpt(std::string(std::size_t{1} << 20, '\x01'), 8) == "\\x01\\x01…");
}

TEST_CASE("what is printable stays as it is") {
  for (const auto* text : {"a\nb", "\xff", "\xe2\x80\xa8", "\\", "Größe"}) {
    const auto once = printable(text);
    CHECK(printable(once) == once);
  }
}

}  // namespace evictd::core::printable_test
