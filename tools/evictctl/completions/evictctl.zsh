#compdef evictctl
# Completion of evictctl for zsh, made by "evictctl completion zsh".
_evictctl() {
  local offer
  local -a offers
  for offer in ${(f)"$(evictctl complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    if [[ $offer == ':files' ]]; then
      compset -P '--*='
      _files
      return
    fi
    offers+=("${${offer//:/\\:}/$'\t'/:}")
  done
  if [[ $offers[1] == *= ]]; then _describe evictctl offers -S ''; else _describe evictctl offers; fi
}
if [[ $funcstack[1] == _evictctl ]]; then _evictctl "$@"; else compdef _evictctl evictctl; fi
