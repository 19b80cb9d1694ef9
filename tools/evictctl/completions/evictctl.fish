# Completion of evictctl for fish, made by "evictctl completion fish".
function __evictctl_offers
  set -l words (commandline -opc)
  set -l begun (commandline -ct)
  set -l offers (evictctl complete -- $words[2..-1] "$begun" 2>/dev/null)
  if test "$offers[1]" = ':files'
    set -l option (string match -r -- '^--[^=]+=' "$begun")
    printf '%s\n' "$option"(__fish_complete_path (string replace -- "$option" '' "$begun"))
  else if set -q offers[1]
    printf '%s\n' $offers
  end
end
complete -c evictctl -f -a '(__evictctl_offers)'
