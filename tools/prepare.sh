# Sourced by the programs of this folder: installs what is missing, builds. Sets `source_dir` and `build_dir`.
# As root it needs no sudo program; otherwise it asks sudo for the installation alone.

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_dir=${BUILD_DIR:-$source_dir/build}

# Everything that a fresh Debian lacks, 12 or later. Each is a dependency as in debian/control, so a name can have its version,
# and another that stands in where that is too old. For programs alone: compiler, build and libraries.
build_packages=(
  build-essential ccache git meson ninja-build pkg-config
  "libboost-dev (>= 1.81) | libboost1.81-dev"
  libcli11-dev libfmt-dev libgrpc++-dev libnghttp2-dev libprotobuf-dev libssl-dev libsystemd-dev libyaml-cpp-dev
  prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc
)
# Beside them, what the tests are built with and run.
packages=(
  "${build_packages[@]}"
  clang-format-19 doctest-dev libfuse3-dev
  btrfs-progs bubblewrap busybox-static chromium-headless-shell containerd dbus-daemon e2fsprogs fish openssl prometheus
  python3 python3-seccomp runc systemd tmux
  util-linux zsh
)

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

required() { printf '%s, ' "${packages[@]}"; }

# What apt would install for `packages`, a name a line: nothing if all are there. Needs no rights. Where this system has no
# such package it fails, and prints apt's reasons.
missing_packages() {
  local said
  said=$(LC_ALL=C apt-get satisfy --simulate --no-install-recommends "$(required)" 2>&1) || { echo "$said"; return 1; }
  sed -n 's/^Inst \([^ ]*\).*/\1/p' <<<"$said"
}

unsupported() { die "this system is not supported: $1; take Debian 12 or later, with its own packages"; }

install_packages() {
  command -v apt-get >/dev/null || unsupported "it has no apt-get"
  local missing lacking as_root=()
  # A fresh machine lacks apt's lists: what is missing is known once they are there.
  if missing=$(missing_packages) && [ -z "$missing" ]; then return; fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "packages are missing, and only root can install them: ${packages[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  missing=$(missing_packages) || {
    lacking=$(sed -nE 's/.*Depends: (.*) but it .*/\1/p' <<<"$missing" | paste -sd, | sed 's/,/, /g')
    [ -n "$lacking" ] || die "apt cannot install what is missing: $(grep -m 1 '^E: ' <<<"$missing")"
    unsupported "apt has no $lacking"
  }
  say "installing" $missing
  # A package's own service must not start: the tests run a containerd of their own. Debian asks this file, of which
  # there may be one already; that is the administrator's.
  "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive sh -c '
    policy=/usr/sbin/policy-rc.d
    if (set -C; printf "#!/bin/sh\nexit 101\n" >"$policy") 2>/dev/null; then
      trap "rm -f $policy" EXIT
      trap "exit 129" HUP
      trap "exit 130" INT
      trap "exit 143" TERM
      chmod 755 "$policy"
    fi
    apt-get satisfy --yes -qq --no-install-recommends "$1"' install "$(required)" >&2
}

# The compiler's results are the same in every checkout (what a debugger is told of its directory is that of the first), and
# precompiled headers and ccache get along only when told so.
use_compiler_cache() {
  export CXX=${CXX:-ccache c++} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
}

# Meson includes the files of a unity build by their absolute paths, with which the cache would know them in one checkout
# only: they are included from where the including file lies.
shorten_unity_includes() {
  local file up
  { grep -rl --include='*-unity*.cpp' "^#include<$build_dir/" "$build_dir" || :; } | while read -r file; do
    up=$(dirname "${file#"$build_dir"/}" | sed 's|[^/]*|..|g')
    sed -i "s|^#include<$build_dir/\(.*\)>\$|#include \"$up/\1\"|" "$file"
  done
}

build_targets=()
# build [MESON OPTION…]: configures once, then builds `build_targets`, or everything. Files are read sixteen at a time (a
# unity build), which takes a third of the processor time. A build directory that is there already stays as it was set up.
build() {
  use_compiler_cache
  if [ ! -e "$build_dir/build.ninja" ]; then
    say "configuring $build_dir"
    meson setup "$build_dir" "$source_dir" -Dunity=on -Dunity_size=16 "$@" >"$build_dir.log" 2>&1 ||
      { cat "$build_dir.log" >&2; die "meson setup failed"; }
    mv "$build_dir.log" "$build_dir/setup.log"
  fi
  say "building"
  # Configures anew where a meson.build changed.
  ninja -C "$build_dir" --quiet build.ninja >"$build_dir/setup.log" 2>&1 || { cat "$build_dir/setup.log" >&2; die "meson setup failed"; }
  shorten_unity_includes
  ninja -C "$build_dir" --quiet "${build_targets[@]}" || die "the build failed"
}
