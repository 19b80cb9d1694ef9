# What is made once and kept: `keep NAME FILE MAKER` sets `kept` to a directory. Where there is none yet, MAKER DIR fills
# one, with DIR/result as the directory and the rest of DIR for work. FILE is the recipe: another one makes another directory.
keep() {
  local name=$1 recipe=$2 maker=$3 cache=${EVICTD_VM_CACHE:-$HOME/.cache/evictd-vm} hash lock new
  hash=$(sha256sum "$recipe")
  kept=$cache/$name-${hash:0:12}
  mkdir -p "$cache"
  exec {lock}>"$cache/$name.lock"
  flock "$lock"  # a second run waits for what the first one makes
  if [ ! -d "$kept" ]; then
    rm -rf --one-file-system "$cache/$name".new.*  # of a run that was killed
    new=$(mktemp -d "$cache/$name.new.XXXXXX")
    temporary+=("$new")
    "$maker" "$new"
    mv -T "$new/result" "$kept"
    rm -rf --one-file-system "$new"
  fi
  exec {lock}>&-
}
