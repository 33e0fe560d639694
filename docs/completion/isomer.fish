# Completion of isomer for fish: commands and options are read from --help.
complete -c isomer -n '__fish_use_subcommand' -f -a "(isomer --help 2> /dev/null | string replace -rf '^ *isomer ([a-z]+).*' '\$1')"
complete -c isomer -n 'not __fish_use_subcommand' -a "(isomer (commandline -opc)[2] --help 2> /dev/null | string match -ra -- '--[a-z][a-z0-9-]*')"
complete -c isomer -a '--config --no-config --help'
