# What every guest boots, made once and kept: `make_image` sets `image` to a directory with a kernel and an initramfs.

# Without udev somebody has to name the modules. What a kernel has built in needs none.
modules=(virtio_pci virtio_console virtio_blk virtiofs overlay ext4 loop)

make_image() {
  local cache=${EVICTD_VM_CACHE:-$HOME/.cache/evictd-vm} new recipe lock
  # Another recipe makes another image. The guest's own scripts are not in it, but join it at every start.
  recipe=$(sha256sum "$vm_source/image.sh")
  image=$cache/$kernel_version-${recipe:0:12}
  mkdir -p "$cache"
  exec {lock}>"$cache/lock"
  flock "$lock"  # a second run waits for the first one's image
  if [ ! -d "$image" ]; then
    rm -rf "$cache"/new.*  # of a run that was killed
    say "making the VM's image with a kernel $kernel_version, once"
    new=$(mktemp -d "$cache/new.XXXXXX")
    temporary+=("$new")
    fetch_kernel "$new"
    mkdir "$new/image"
    cp "$new"/package/boot/vmlinuz-* "$new/image/kernel"
    make_initramfs "$new/package" "$new/root" >"$new/image/initramfs"
    mv -T "$new/image" "$image"
    rm -rf "$new"
  fi
  exec {lock}>&-
}

# fetch_kernel DIR: unpacks the kernel's package into DIR/package.
fetch_kernel() {
  apt=(-o APT::Sandbox::User=root -o "Dir::Cache=$1/cache")
  download_kernel "$1" || { update_lists; download_kernel "$1"; } || { use_backports "$1" && download_kernel "$1"; } ||
    die "apt has no package of a cloud kernel $kernel_version, neither from its own sources nor from Debian's backports"
  dpkg-deb --extract "$1"/*.deb "$1/package"
}

download_kernel() {
  local name
  name=$(apt-cache "${apt[@]}" search --names-only "^linux-image-${kernel_version/./\\.}\.[^ ]*-cloud-amd64\$" |
    cut -d ' ' -f 1 | sort -V | tail -n 1)
  [ -n "$name" ] && (cd "$1" && apt-get "${apt[@]}" download -qq "$name" >&2)
}

update_lists() { apt-get "${apt[@]}" update -qq >&2; }

# use_backports DIR: lets apt look into the backports of the mirror that it has Debian from. Its own configuration and lists
# stay as they are.
use_backports() {
  local codename mirror
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Release: $codename" | head -n 1)
  [ -n "$mirror" ] || return
  echo "deb $mirror $codename-backports main" >"$1/sources.list"
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
