# SPDX-License-Identifier: Apache-2.0
# What the shell of a session begins with. The driver reads what is written to descriptor 61:
# records of five fields, each of which ends with a NUL byte: kind, number of the cell, and three more.

set +H +o history
PS1='' PS2=''
unset HISTFILE PROMPT_COMMAND
shopt -s expand_aliases
# Where the last command failed that did, and the one before it (the sourcing of the cell is last).
trap '__cellkeep_before=$__cellkeep_line __cellkeep_line=$LINENO' ERR

# A program may end an interrupt in its own way, with an exit code: bash then goes on with the cell. The
# driver sends SIGURG beside SIGINT, and bash runs its trap when the foreground has ended, whichever way.
# The jump comes before the next command: out of the trap itself it would leave bash in the middle of a
# wait or of a line.
trap '[ -z "$__cellkeep_runs" ] || builtin trap "$__cellkeep_stop" DEBUG' URG
__cellkeep_stop='builtin trap - DEBUG; [ -z "$__cellkeep_runs" ] || { builtin trap - INT; builtin kill -INT "$$"; }'

# How the cell has ended. The driver sends this line more often than it needs one (shell.py).
,() {
    {
        local status=$?
        __cellkeep_runs=
        # An interrupt between fork and exec makes a second shell of the child, which reads on here.
        # Its parent looks for a child that died of the signal.
        if [ "$BASHPID" != "$$" ]; then
            exec /usr/bin/bash -c 'kill -INT $$'
            builtin exit 130
        fi
        builtin printf '%s\0' end "$__cellkeep_cell" "$status" "$__cellkeep_before" "$__cellkeep_exit" >&61
    } 2>/dev/null
    # What exit has silenced.
    [ -z "$__cellkeep_exit" ] || exec 2>&57
}

# Ends the cell with this exit code, not the shell. In a subshell it is the builtin.
exit() {
    local code=${1:-$?}
    if [ "$BASHPID" = "$$" ]; then
        __cellkeep_exit=$code
        # Back to the prompt. bash ends the line on stderr, though none was begun. A trap of the
        # cell's own would keep it here.
        builtin trap - INT
        exec 2>/dev/null
        while :; do builtin kill -INT "$$"; done
    fi
    builtin exit "$code"
}

display() {
    local mime='' copy
    case ${1:-} in
        -h | --help | '')
            if [ -n "${1:-}" ] || [ -t 0 ]; then
                builtin printf '%s\n' 'display FILE...: shows pictures (PNG, JPEG, GIF, SVG), HTML, Markdown, JSON or text' \
                    'COMMAND | display MIME: shows what the command writes, as text/html for example'
                [ -n "${1:-}" ]
                return
            fi
            mime=text/plain ;;
        text/* | image/* | application/*)
            [ -e "$1" ] || mime=$1 ;;
    esac
    if [ -n "$mime" ]; then
        copy=$(command mktemp "$__cellkeep_directory/display.XXXXXX") && command cat >|"$copy" || return
        builtin printf '%s\0' display "$__cellkeep_cell" "$mime" "$copy" '' >&61
        return
    fi
    local file
    for file; do
        if [ ! -f "$file" ] || [ ! -r "$file" ]; then
            builtin printf 'display: %s: no file that can be read\n' "$file" >&2
            return 1
        fi
        # A copy: the cell may go on and change or remove the file.
        copy=$(command mktemp "$__cellkeep_directory/display.XXXXXX") && command cp -- "$file" "$copy" || return
        builtin printf '%s\0' display "$__cellkeep_cell" '' "$copy" "$file" >&61
    done
}
