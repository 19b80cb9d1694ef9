#include "cri/image_filesystem.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "fixture/result.hpp"

namespace evictd::cri::image_filesystem_test {

namespace asio = boost::asio;
namespace cri = evictd::cri;
using evictd::fixture::error_of;
using evictd::test::FakeRuntime;

namespace {

constexpr auto directory = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs";

struct Fixture {
  FakeRuntime runtime;
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), evictd::test::patience};
  runtime::v1::ImageFsInfoResponse answer;

  evictd::Result<cri::ImageFilesystem> ask() {
    runtime.put(answer);
    return evictd::test::run(reactor, cri::image_filesystem(client));
  }
};

}  // namespace

TEST_CASE("a runtime with one file system keeps images and writable layers there") {
  Fixture f;
  f.runtime.start();
  f.answer.add_image_filesystems()->mutable_fs_id()->set_mountpoint(directory);
  CHECK(f.ask() == cri::ImageFilesystem{.images = directory, .writable_layers = directory});
}

TEST_CASE("a runtime may keep the writable layers apart from the images") {
  Fixture f;
  f.runtime.start();
  f.answer.add_image_filesystems()->mutable_fs_id()->set_mountpoint("/images");
  f.answer.add_image_filesystems()->mutable_fs_id()->set_mountpoint("/more-images");
  f.answer.add_container_filesystems()->mutable_fs_id()->set_mountpoint("/layers");
  CHECK(f.ask() == cri::ImageFilesystem{.images = "/images", .writable_layers = "/layers"});
}

TEST_CASE("a runtime that names no image file system is an error of one line") {
  Fixture f;
  f.runtime.start();
  const auto nowhere = f.runtime.endpoint() + ": ImageFsInfo: the runtime does not say where its images are";
  CHECK(error_of(f.ask()) == nowhere);
  f.answer.add_image_filesystems();
  CHECK(error_of(f.ask()) == nowhere);
}

TEST_CASE("without a runtime there is no telling where its images are") {
  Fixture f;
  CHECK(error_of(f.ask()).starts_with("cannot find the image file system: " + f.runtime.endpoint()));
}

}  // namespace evictd::cri::image_filesystem_test
