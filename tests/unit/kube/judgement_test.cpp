#include "kube/judgement.hpp"

#include <doctest/doctest.h>

#include <string>

namespace evictd::kube::judgement_test {
namespace {

Response status(int code, std::string reason, std::string message, std::string details = "{}") {
  return {.status = code,
          .body = R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":")" + message + R"(","reason":")" +
                  reason + R"(","details":)" + details + R"(,"code":)" + std::to_string(code) + "}"};
}

Verdict verdict(const Response& response) { return judge(response).verdict; }

}  // namespace

TEST_CASE("what a report makes of an answer follows from its code, and from what the Status says") {
  CHECK(verdict({.status = 200, .body = "{}"}) == Verdict::Done);
  CHECK(verdict({.status = 201, .body = "not even JSON"}) == Verdict::Done);
  CHECK(verdict(status(401, "Unauthorized", "Unauthorized")) == Verdict::Unauthorized);
  CHECK(verdict(status(403, "Forbidden", "pods is forbidden")) == Verdict::Forbidden);
  CHECK(verdict(status(404, "NotFound", "pods not found")) == Verdict::NotFound);
  CHECK(verdict(status(400, "BadRequest", "cannot be decoded")) == Verdict::Rejected);
  CHECK(verdict(status(405, "MethodNotAllowed", "")) == Verdict::Rejected);
  for (const auto code : {408, 429, 500, 502, 503, 504})
    CHECK_MESSAGE(verdict({.status = code, .body = "<html>"}) == Verdict::Busy, code);
}

TEST_CASE("what is not the API server's own word ends no report: a proxy's page may be another one soon") {
  for (const auto code : {302, 400, 404, 405, 410, 413, 422})
    for (const std::string body : {"", "404 page not found", R"({"kind":"Pod"})"}) {
      CAPTURE(code);
      CAPTURE(body);
      CHECK(verdict({.status = code, .body = body}) == Verdict::Busy);
    }
  CHECK(verdict({.status = 403, .body = "<html>"}) == Verdict::Forbidden);
}

TEST_CASE("a conflict is another pod, an object that exists, or a second writer") {
  CHECK(verdict(status(409, "AlreadyExists", "events exists")) == Verdict::Exists);
  CHECK(verdict(status(409, "Conflict", "the object has been modified; please apply your changes")) ==
        Verdict::Conflict);
  CHECK(verdict(status(409, "Conflict",
                       "StorageError: invalid object, Code: 4, AdditionalErrorMsg: Precondition failed: UID in "
                       "precondition: a, UID in object meta: b")) == Verdict::AnotherPod);
  CHECK(verdict({.status = 409, .body = ""}) == Verdict::Conflict);
}

TEST_CASE("a patch with another uid is refused as a change of the immutable uid") {
  const auto* uid_alone = R"({"causes":[{"reason":"FieldValueInvalid","field":"metadata.uid"}]})";
  const auto* more = R"({"causes":[{"field":"metadata.uid"},{"field":"status.phase"}]})";
  CHECK(verdict(status(422, "Invalid", "field is immutable", uid_alone)) == Verdict::AnotherPod);
  CHECK(verdict(status(422, "Invalid", "several", more)) == Verdict::Rejected);
  CHECK(verdict(status(422, "Invalid", "none named")) == Verdict::Rejected);
}

TEST_CASE("in a namespace that is being deleted nothing can be made, which is nobody's lack of rights") {
  const auto* ending = R"({"causes":[{"reason":"NamespaceTerminating","field":"metadata.namespace"}]})";
  CHECK(verdict(status(403, "Forbidden", "being terminated", ending)) == Verdict::NotFound);
}

TEST_CASE("the message is the server's, with the code; of what is no Status only the code is told") {
  CHECK(judge(status(403, "Forbidden", "pods is forbidden")).message == "pods is forbidden (403)");
  CHECK(judge({.status = 502, .body = "<html>Bad Gateway</html>"}).message == "status 502");
  CHECK(judge({.status = 500, .body = R"({"kind":"Pod","message":"x"})"}).message == "status 500");
}

}  // namespace evictd::kube::judgement_test
