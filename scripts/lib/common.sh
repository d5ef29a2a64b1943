# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What every script here starts from: strict mode, where things are, and stages. A stage is one
# line a person can read while its command's own output goes to build/logs/; when the command
# fails, the end of that log is shown and the script ends with the command's exit code.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lib="$root/scripts/lib"
build="$root/build"
logs="$build/logs"
system_python=/usr/bin/python3
python_environment="$build/environments/python"
tools_environment="$build/environments/tools"
readonly root lib build logs system_python python_environment tools_environment
mkdir -p "$logs"

# Scripts must behave alike whatever folder, locale or editor they are started from.
cd "$root"
export LC_ALL=C.UTF-8
export PYTHONDONTWRITEBYTECODE=1
unset CDPATH PYTHONHOME PYTHONPATH VIRTUAL_ENV

say() { printf '%s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# The two faces of progress: a terminal sees one line that moves, a log file sees every tenth part.
# Reads a command's output, understands ninja's "[3/120]"; everything is already in the log.
show_progress() {
    local terminal=0
    [ -t 1 ] && [ -z "${CI:-}" ] && terminal=1
    awk -v terminal="$terminal" '
        match($0, /^\[[0-9]+\/[0-9]+\]/) {
            split(substr($0, 2, RLENGTH - 2), part, "/")
            if (terminal) {
                printf "\r\033[K    %d of %d", part[1], part[2]
                moved = 1
            } else if (part[2] >= 10) {
                tenth = int(10 * part[1] / part[2])
                if (tenth > told) { printf "    %d of %d\n", part[1], part[2]; told = tenth }
            }
            fflush()
            next
        }
        terminal { printf "\r\033[K    %s", substr($0, 1, 72); moved = 1; fflush() }
        END { if (moved) printf "\r\033[K" }'
}

# stage LOG TITLE COMMAND...: runs the command with no standard input.
stage() {
    local log="$logs/$1.log" title="$2" status=0
    shift 2
    say "==> $title"
    local began=$SECONDS
    { "$@" 2>&1 </dev/null | tee "$log" | show_progress; } || status=${PIPESTATUS[0]}
    if [ "$status" -ne 0 ]; then
        say "    failed; the end of $log:"
        tail -n 40 "$log" | sed 's/^/    | /'
        exit "$status"
    fi
    local took=$((SECONDS - began))
    [ "$took" -lt 2 ] || say "    done in $took s"
}
