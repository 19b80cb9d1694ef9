#include "config/document_progress.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <string>

namespace evictd::config {
namespace {

/// Looks at nothing but where documents begin.
class Starts : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_) throw YAML::ParserException(mark, "something stands outside of any list or mapping");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

}  // namespace

void check_progress(std::string_view text) {
  // Without a comma there is nothing to be stuck at.
  if (text.find(',') == std::string_view::npos) return;
  std::istringstream stream{std::string(text)};
  YAML::Parser parser{stream};
  Starts starts;
  while (parser.HandleNextDocument(starts)) {
  }
}

}  // namespace evictd::config
