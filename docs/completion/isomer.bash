# Completion of isomer for bash. Commands and options are read
# from --help, so that they are those of the program that is installed.
_isomer() {
  local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$("$program" --help 2> /dev/null | sed -n 's/^ *isomer \([a-z][a-z]*\).*/\1/p') --help --version --config --no-config" -- "$cur"))
  elif [ "${cur#-}" != "$cur" ]; then
    COMPREPLY=($(compgen -W "$("$program" "${COMP_WORDS[1]}" --help 2> /dev/null | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u) --help --config --no-config" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -o filenames -F _isomer isomer
