#include "api/pre_kill_call.hpp"

#include <memory>
#include <utility>

#include "api/pre_kill_stream.hpp"  // IWYU pragma: keep

namespace evictd::api {

void PreKillCall::read() {
  ask([this](PreKillGrpcStream& stream) {
    incoming_.Clear();
    stream.Read(&incoming_, read_tag_.tag());
  });
}

void PreKillCall::on_read(bool ok) {
  if (ok)
    tell([answer = std::make_shared<const v1::PreKillAnswer>(std::move(incoming_))](PreKillStream& stream) {
      stream.received(*answer);
    });
  else
    tell([](PreKillStream& stream) { stream.peer_left(); });
  release();
}

}  // namespace evictd::api
