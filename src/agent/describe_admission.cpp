#include "agent/describe_admission.hpp"

#include "admission/device_edits.hpp"
#include "admission/number_list.hpp"
#include "agent/describe.hpp"

namespace evictd::agent {
namespace {

v1::DeviceEdits describe_edits(const admission::DeviceEdits& edits) {
  v1::DeviceEdits message;
  message.mutable_environment()->insert(edits.environment.begin(), edits.environment.end());
  for (const auto& mount : edits.mounts) {
    auto& described = *message.add_mounts();
    described.set_container_path(mount.container_path);
    described.set_host_path(mount.host_path);
    described.set_read_only(mount.read_only);
  }
  for (const auto& device : edits.devices) {
    auto& described = *message.add_devices();
    described.set_container_path(device.container_path);
    described.set_host_path(device.host_path);
    described.set_permissions(device.permissions);
  }
  message.mutable_annotations()->insert(edits.annotations.begin(), edits.annotations.end());
  message.mutable_cdi_devices()->Add(edits.cdi_devices.begin(), edits.cdi_devices.end());
  return message;
}

v1::AdmitResponse::Resize pending_resize(const admission::Decision& decision) {
  if (decision.operation != admission::Operation::Resize || decision.verdict.admitted)
    return v1::AdmitResponse::RESIZE_NOT_PENDING;
  return decision.verdict.reason == admission::infeasible_resize ? v1::AdmitResponse::RESIZE_INFEASIBLE
                                                                 : v1::AdmitResponse::RESIZE_DEFERRED;
}

}  // namespace

v1::ContainerAllocation describe_allocation(const std::string& container, const admission::ContainerAllocation& given) {
  v1::ContainerAllocation message;
  message.set_container(container);
  message.set_cpus(admission::print_number_list(given.cpus));
  for (const auto& block : given.memory) {
    auto& memory = *message.add_memory();
    memory.set_numa_nodes(admission::print_number_list(block.numa_nodes));
    memory.set_type(block.type);
    memory.set_bytes(block.bytes);
  }
  for (const auto& [resource, ids] : given.devices) {
    auto& devices = *message.add_devices();
    devices.set_resource(resource);
    devices.mutable_ids()->Add(ids.begin(), ids.end());
  }
  if (given.edits) *message.mutable_edits() = describe_edits(*given.edits);
  return message;
}

v1::AdmitResponse describe_decision(const core::Pod& pod, const admission::Decision& decision,
                                    const std::vector<std::string_view>& handlers) {
  v1::AdmitResponse answer;
  *answer.mutable_pod() = describe_pod(pod);
  answer.set_admitted(decision.verdict.admitted);
  answer.set_reason(decision.verdict.reason);
  answer.set_message(decision.verdict.message);
  answer.set_resize(pending_resize(decision));
  for (std::size_t i = 0; i < handlers.size(); ++i) {
    auto& handler = *answer.add_handlers();
    handler.set_handler(std::string(handlers[i]));
    handler.set_verdict(i < decision.admitted_by.size()   ? "admitted"
                        : handlers[i] == decision.handler ? "rejected"
                                                          : "not asked");
  }
  for (const auto& victim : decision.verdict.preempted) *answer.add_preempted() = describe_pod(*victim);
  for (const auto& [container, given] : decision.verdict.allocation)
    *answer.add_allocations() = describe_allocation(container, given);
  return answer;
}

}  // namespace evictd::agent
