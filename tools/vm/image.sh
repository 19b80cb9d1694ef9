# What every guest boots, made once and kept: `make_image` sets `image` to a directory with a kernel and an initramfs.

# Without udev somebody has to name the modules. What a kernel has built in needs none.
modules=(virtio_pci virtio_console virtio_blk virtiofs overlay ext4 loop)

make_image() {
  # The guest's own scripts are not in it, but join it at every start.
  keep "$kernel_version" "$vm_source/image.sh" make_kernel_and_initramfs
  image=$kept
}

make_kernel_and_initramfs() {
  say "making the VM's image with a kernel $kernel_version, once"
  fetch_kernel "$1"
  mkdir "$1/result"
  cp "$1"/package/boot/vmlinuz-* "$1/result/kernel"
  make_initramfs "$1/package" "$1/root" >"$1/result/initramfs"
}

# In whose archive a kernel is, where apt's own sources have none.
declare -A kernel_suites=([6.1]=bookworm [6.12]=trixie [newest]=trixie-backports)

# fetch_kernel DIR: unpacks the kernel's package into DIR/package.
fetch_kernel() {
  local suite=${kernel_suites[$kernel_version]} name='[0-9]+\.[0-9]+\.'
  apt=(-o APT::Sandbox::User=root -o "Dir::Cache=$1/cache")
  if [ "$kernel_version" = newest ]; then
    use_suite "$1" "$suite" && download_kernel "$1" "$name"
  else
    name=${kernel_version/./\\.}\\.
    download_kernel "$1" "$name" || { update_lists && download_kernel "$1" "$name"; } ||
      { use_suite "$1" "$suite" && download_kernel "$1" "$name"; }
  fi || die "apt has no package of a cloud kernel $kernel_version, neither from its own sources nor from Debian's $suite"
  local package
  for package in "$1"/*.deb; do dpkg-deb --extract "$package" "$1/package"; done
  # Newer packages have all of it in one directory of /usr.
  if [ ! -d "$1/package/lib/modules" ]; then
    mkdir -p "$1"/package/{boot,lib}
    mv "$1/package/usr/lib/modules" "$1/package/lib/"
    mv "$1"/package/lib/modules/*/vmlinuz "$1/package/boot/vmlinuz-"
  fi
}

# download_kernel DIR VERSION: the last one of those whose version begins so, a regular expression. Newer ones have the kernel
# and its modules in packages of their own.
download_kernel() {
  local name parts
  name=$(apt-cache "${apt[@]}" search --names-only "^linux-image-$2[^ ]*-cloud-amd64\$" |
    cut -d ' ' -f 1 | sort -V | tail -n 1)
  [ -n "$name" ] || return
  parts=${name#linux-image-}
  parts=$(apt-cache "${apt[@]}" search --names-only "^linux-(binary|modules)-${parts//+/\\+}\$" | cut -d ' ' -f 1)
  (cd "$1" && apt-get "${apt[@]}" download -qq "$name" $parts >&2)
}

update_lists() { apt-get "${apt[@]}" update -qq >&2; }

# use_suite DIR SUITE: lets apt look into this suite of the mirror that it has Debian from, and nowhere else. Its own
# configuration and lists stay as they are.
use_suite() {
  local codename mirror
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Release: $codename" | head -n 1)
  [ -n "$mirror" ] || return
  echo "deb $mirror $2 main" >"$1/sources.list"
  mkdir -p "$1/lists"
  apt+=(-o "Dir::Etc::SourceList=$1/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$1/lists")
  update_lists
}

# make_initramfs PACKAGE DIR: an archive of busybox and the modules, on stdout. DIR is for work.
make_initramfs() {
  local version module found
  version=$(basename "$1"/lib/modules/*)
  mkdir -p "$2/bin" "$2/lib/modules/$version"
  cp "$(command -v busybox)" "$2/bin/busybox"
  busybox depmod -b "$1" "$version"
  for module in "${modules[@]}"; do
    # A line of modules.dep: the module, a colon, and all that it needs.
    found=$(grep -E "/$module\.ko(\.xz)?:" "$1/lib/modules/$version/modules.dep" | tr -d :) || continue
    (cd "$1/lib/modules/$version" && cp --parents --update $found "$2/lib/modules/$version")
  done
  find "$2/lib/modules" -name '*.ko.xz' -exec unxz {} +  # insmod cannot
  busybox depmod -b "$2" "$version"
  pack "$2"
}

# pack DIR: its contents as an archive of the kind that the kernel unpacks at its start, on stdout.
pack() { (cd "$1" && find . -mindepth 1 | busybox cpio -o -H newc 2>/dev/null); }
