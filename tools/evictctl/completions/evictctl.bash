# Completion of evictctl for bash, made by "evictctl completion bash".
_evictctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} offers
  mapfile -t offers < <(evictctl complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ ${offers[0]-} == ':files' ]]; then
    [[ $cur == '=' ]] && cur=''
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  COMPREPLY=("${offers[@]%%$'\t'*}")
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _evictctl evictctl
