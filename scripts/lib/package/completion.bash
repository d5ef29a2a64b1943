# SPDX-License-Identifier: Apache-2.0
# Completion for bash: commands and options, as the program's own help names them.

_cellkeep() {
    local word="${COMP_WORDS[COMP_CWORD]}" words
    if [ "$COMP_CWORD" -eq 1 ]; then
        words=$(cellkeep --help 2>/dev/null | sed -n 's/^  \([a-z]\+\) .*/\1/p')
    elif [[ "$word" == -* ]]; then
        words=$(cellkeep "${COMP_WORDS[1]}" --help 2>/dev/null | grep -o -- '--[a-z-]\+')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _cellkeep cellkeep
