// A file system in user space: shows a directory of another one, with numbers of its own. While this process is stopped
// it does not answer, as a disk or a network file system that hangs.
//
//   disk-server DIRECTORY [FUSE OPTION…] MOUNTPOINT
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

namespace {

std::string backing;

std::string below(const char* path) { return backing + path; }

int result(int returned) { return returned < 0 ? -errno : returned; }

int get_attributes(const char* path, struct stat* status, fuse_file_info*) {
  return result(::lstat(below(path).c_str(), status));
}

int list(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
  DIR* directory = ::opendir(below(path).c_str());
  if (directory == nullptr) return -errno;
  while (const dirent* entry = ::readdir(directory)) fill(buffer, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
  ::closedir(directory);
  return 0;
}

int read(const char* path, char* buffer, std::size_t size, off_t offset, fuse_file_info*) {
  const int file = ::open(below(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -errno;
  const auto count = result(static_cast<int>(::pread(file, buffer, size, offset)));
  ::close(file);
  return count;
}

int make_directory(const char* path, mode_t mode) { return result(::mkdir(below(path).c_str(), mode)); }

/// 10 GiB, half of them free.
int statistics(const char*, struct statvfs* numbers) {
  *numbers = {};
  numbers->f_bsize = numbers->f_frsize = 4096;
  numbers->f_blocks = 2'621'440;
  numbers->f_bfree = numbers->f_bavail = numbers->f_blocks / 2;
  numbers->f_files = 100'000;
  numbers->f_ffree = numbers->f_favail = 50'000;
  numbers->f_namemax = 255;
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fputs("usage: disk-server DIRECTORY [FUSE OPTION…] MOUNTPOINT\n", stderr);
    return 2;
  }
  backing = arguments[1];
  std::vector<char*> rest{arguments[0]};
  rest.insert(rest.end(), arguments + 2, arguments + count);
  fuse_operations operations{};
  operations.getattr = get_attributes;
  operations.readdir = list;
  operations.read = read;
  operations.mkdir = make_directory;
  operations.statfs = statistics;
  return fuse_main(static_cast<int>(rest.size()), rest.data(), &operations, nullptr);
}
