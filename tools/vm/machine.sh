# One guest, from its start to its end: `run_machine` sets `status`.

virtiofsd=/usr/lib/qemu/virtiofsd

# Under emulation a guest's kernel hangs now and then before anything of the command has run: then another one is started.
boot_attempts=3
boot_patience=180  # seconds; on a busy machine a boot may take one minute
end_patience=30    # seconds that a guest may take to end once it has told the command's status

run_machine() {
  local attempt
  # A system's boot takes a minute where nothing else runs, and shutting down waits for pods.
  [ -z "$is_system" ] || boot_patience=600 end_patience=600
  for ((attempt = 1; attempt <= boot_attempts; ++attempt)); do
    prepare_machine
    start_guest
    ! await_start || break
    tail -n 5 "$console" >&2
    say "the guest has not started within $boot_patience s, attempt $attempt of $boot_attempts; above is the last of its console"
    end_guest
  done
  await_guest
}

prepare_machine() {
  work=$(mktemp -d)
  temporary+=("$work")
  devices=()
  touch "$work/status"
  # What it said at an earlier attempt explains nothing.
  : >"${console:=$work/console}"
  write_initramfs
  share_files
  [ -z "$disk_gib" ] || add_disk
  forward_streams
}

# The image's initramfs, and behind it what belongs to this run: the kernel unpacks one over the other.
write_initramfs() {
  local own=$work/initramfs.own
  mkdir -p "$own/evictd-vm"
  cp "$vm_source/guest/init" "$own/init"
  cp "$vm_source"/guest/{start,start-service,streams} "$own/evictd-vm/"
  [ -z "$is_system" ] || cp "$vm_source/guest/command.service" "$own/evictd-vm/"
  write_command >"$own/evictd-vm/command"
  printf '%s' "$output_directory" >"$own/evictd-vm/output-directory"
  { cat "$image/initramfs"; pack "$own"; } >"$work/initramfs"
}

# The command as a script for the guest.
write_command() {
  local variable
  for variable in "${variables[@]}"; do
    if [[ $variable != *=* ]]; then
      [ -v "$variable" ] || continue
      variable=$variable=${!variable}
    fi
    printf 'export %s=%q\n' "${variable%%=*}" "${variable#*=}"
  done
  printf 'cd %q || exit 125\n' "${is_system:+/machine}$PWD"
  printf 'exec'
  printf ' %q' "${command[@]}"
  echo
}

share_files() {
  if [ -n "$is_system" ]; then
    share root cache=always "$system"
    share_machine machine
  else
    share_machine root
  fi
  [ -z "$output_directory" ] || share output cache=auto "$output_directory"
}

# share_machine TAG: this machine's files, without the directories that the guest has of its own. The daemon's mount
# namespace ends with it.
share_machine() {
  mkdir "$work/root"
  share "$1" cache=always "$work/root" unshare --mount --propagation private bash -c '
    mount --rbind / "$1"
    for directory in dev proc run sys; do umount --recursive --lazy "$1/$directory" 2>/dev/null; done
    shift
    exec "$@"' - "$work/root"
}

# share TAG CACHING DIR [PROGRAM…]: serves DIR to the guest by a daemon of its own, which PROGRAM starts.
share() {
  local tag=$1 caching=$2 directory=$3 socket=$work/$1.socket
  shift 3
  "$@" "$virtiofsd" -o "$caching" -o sandbox=chroot -o source="$directory" --socket-path="$socket" \
    </dev/null >"$work/$tag.log" 2>&1 &
  await_socket "$socket" $! || die "virtiofsd does not serve $directory: $(tail -n 1 "$work/$tag.log")"
  devices+=(-chardev "socket,id=$tag,path=$socket" -device "vhost-user-fs-pci,chardev=$tag,tag=$tag")
}

# await_socket PATH PROCESS
await_socket() {
  for _ in {1..600}; do
    [ ! -S "$1" ] || return 0
    kill -0 "$2" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}

add_disk() {
  truncate --size "${disk_gib}G" "$work/disk"
  mkfs.ext4 -q -E nodiscard,lazy_itable_init=1 "$work/disk"
  devices+=(-drive "file=$work/disk,if=virtio,format=raw,cache=unsafe")
}

# QEMU opens files for writing only, and not every stdout can be opened so. A pipe can.
forward_streams() {
  local port
  devices+=(-device virtio-serial-pci)
  mkfifo "$work/stdout" "$work/stderr"
  cat <"$work/stdout" &
  streams=($!)
  cat <"$work/stderr" >&2 &
  streams+=($!)
  for port in stdout stderr status; do
    devices+=(-chardev "file,id=$port,path=$work/$port" -device "virtserialport,chardev=$port,name=$port")
  done
}

# tsc_frequency: what a guest is told of the time-stamp counter, which is this machine's own. A guest that measures it by an
# emulated timer while others take the processors may find half of the truth, and its clock then runs at twice the speed, with
# which every time limit in it comes too early. It is what cpuinfo has wherever nothing scales or meters the frequency, as
# in virtual machines; elsewhere the guest does measure it.
tsc_frequency() {
  [ ! -d /sys/devices/system/cpu/cpu0/cpufreq ] || return 0
  grep -qw constant_tsc /proc/cpuinfo && ! grep -qw aperfmperf /proc/cpuinfo || return 0
  awk '/^cpu MHz/ { printf "tsc_early_khz=%d\n", $4 * 1000 + 0.5; exit }' /proc/cpuinfo
}

start_guest() {
  # cx16: with this instruction on offer, 6.12 corrupts its free lists under QEMU 7.2 now and then. la57: spares a level of
  # page tables, which are walked in software here.
  local cpu=max,la57=off,cx16=off
  # Behind psi: calibrations and defences that cost an emulated machine time and give it nothing.
  local arguments=(console=ttyS0 quiet panic=-1 cgroup_no_v1=all psi=1 nokaslr mitigations=off tsc=reliable no_timer_check)
  arguments+=($(tsc_frequency))
  # Nobody logs in there, nor is there a udev that would find a terminal. The journal on the console explains what went wrong.
  [ -z "$is_system" ] || arguments+=(systemd.getty_auto=no systemd.journald.forward_to_console=1)
  setpriv --pdeathsig KILL qemu-system-x86_64 \
    -machine q35,memory-backend=memory -accel tcg,thread=multi -cpu "$cpu" -smp "$cpus" \
    -m "$memory_mib" -object "memory-backend-memfd,id=memory,size=${memory_mib}M,share=on" \
    -nodefaults -no-user-config -display none -no-reboot -serial "file:$console" \
    -kernel "$image/kernel" -initrd "$work/initramfs" -append "${arguments[*]}" \
    "${devices[@]}" </dev/null >"$work/qemu.log" 2>&1 &
  guest=$!
}

# The guest's first word comes right before the command.
await_start() {
  local end=$((SECONDS + boot_patience))
  while [ ! -s "$work/status" ] && kill -0 "$guest" 2>/dev/null; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

end_guest() { { kill -KILL "$guest" && wait "$guest"; } 2>/dev/null || :; }

await_guest() {
  local end=$((SECONDS + timeout)) last=
  while kill -0 "$guest" 2>/dev/null; do
    [ -n "$last" ] || [ -z "$(told_status)" ] || last=$((SECONDS + end_patience))
    if [ -n "$last" ] && [ $SECONDS -ge "$last" ]; then
      end_guest
    elif [ $SECONDS -ge $end ]; then
      tail -n 5 "$console" >&2
      printf 'tools/vm/run: the guest has not come to an end after %s s; above is the last of its console\n' "$timeout" >&2
      status=124
      return
    fi
    sleep 0.5  # each look starts three programs: ten a second took a tenth of two slow processors
  done
  # A QEMU that could not start has never opened its end of the pipes; the other end still waits for that.
  : <>"$work/stdout" <>"$work/stderr"
  wait "${streams[@]}" || :
  status=$(told_status)
  if [ -z "$status" ]; then
    cat "$work/qemu.log" "$work/root.log" >&2
    tail -n 100 "$console" >&2
    die "the guest ended without a status; above are the words of QEMU and virtiofsd and the last of its console"
  fi
}

told_status() { sed -n 's/^status //p' "$work/status"; }
