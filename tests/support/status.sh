# Sourced by what runs several test programs one after the other, or side by side.

# worse STATUS ENDED: what the whole ends with, of which one program more ended so. 77 says that something was skipped,
# which is no word against what another program ended with.
worse() {
  if [ "$2" -eq 0 ] || { [ "$2" -eq 77 ] && [ "$1" -ne 0 ]; }; then echo "$1"; else echo "$2"; fi
}
