# The Debian that a guest boots by itself: `make_system` sets `system` to its directory.
#
# It is a node, less its evictd: systemd, D-Bus, containerd, and all that evictd's package needs to be built there and to be
# installed; busybox is what the pods of tests run. Packages that a test installs beside it are in apt's cache.
system_codename=trixie
system_packages=(
  systemd-sysv libpam-systemd dbus containerd runc e2fsprogs busybox-static
  "${build_packages[@]}" debhelper dpkg-dev lintian
)
packages_to_install=(earlyoom systemd-oomd)

make_system() {
  keep "$system_codename" <(cat "$vm_source/system.sh"; printf '%s\n' "${system_packages[@]}") bootstrap
  system=$kept
}

bootstrap() {
  local root=$1/result
  say "making a Debian $system_codename to boot, once"
  "$source_dir/tools/debian/make-root" "$system_codename" "$root" >&2 || die "debootstrap cannot make a $system_codename"
  # A service must not start while it is made.
  "$source_dir/tools/debian/in-root" "$root" -- env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 bash -euc '
    apt-get update -qq
    apt-get satisfy --yes -qq --no-install-recommends "$1"
    apt-get clean
    apt-get install --yes -qq --no-install-recommends --download-only "${@:2}"' - "$(printf '%s, ' "${system_packages[@]}")" "${packages_to_install[@]}" \
    >"$1/log" 2>&1 || { tail -n 30 "$1/log" >&2; die "the system's packages cannot be installed"; }
  echo evictd-node >"$root/etc/hostname"
}
