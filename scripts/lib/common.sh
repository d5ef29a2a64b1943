# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What every script here sources first: strict mode, the paths, and stages. A stage is one
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
lab_environment="$build/environments/lab"
node_environment="$build/environments/node"
readonly root lib build logs system_python python_environment tools_environment lab_environment
readonly node_environment
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

# Seconds as a person writes them.
rough_time() {
    if [ "$1" -lt 90 ]; then printf '%d s' "$1"; else printf '%d min' $((($1 + 30) / 60)); fi
}

# Shows progress in two ways: a terminal gets one line that changes, a log file every tenth part.
# Reads a command's output, understands ninja's "[3/120]"; everything is already in the log. The time
# that remains is estimated from the steps so far, once they are a tenth of all.
show_progress() {
    local line terminal=no shown=0 tenth done total left began=$SECONDS
    [ -t 1 ] && [ -z "${CI:-}" ] && terminal=yes
    while IFS= read -r line; do
        if [[ "$line" =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
            done=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} left=''
            if [ "$total" -ge 10 ] && [ $((10 * done)) -ge "$total" ] && [ "$done" -lt "$total" ]; then
                left=", about $(rough_time $(((SECONDS - began) * (total - done) / done))) left"
            fi
            if [ "$terminal" = yes ]; then
                printf '\r\033[K    %d of %d%s' "$done" "$total" "$left"
            elif [ "$total" -ge 10 ]; then
                tenth=$((10 * done / total))
                if [ "$tenth" -gt "$shown" ]; then
                    printf '    %d of %d%s\n' "$done" "$total" "$left"
                    shown=$tenth
                fi
            fi
        elif [ "$terminal" = yes ]; then
            printf '\r\033[K    %s' "${line:0:72}"
        fi
    done
    [ "$terminal" = no ] || printf '\r\033[K'
}

# stage LOG TITLE COMMAND...: runs the command with no standard input.
stage() {
    local log="$logs/$1.log" title="$2" status
    shift 2
    say "==> $title"
    local began=$SECONDS
    # Not `pipeline || status=...`: bash would then ignore every failure inside the command's
    # function but the last.
    set +e
    (set -e; "$@") 2>&1 </dev/null | tee "$log" | show_progress
    status=${PIPESTATUS[0]}
    set -e
    if [ "$status" -ne 0 ]; then
        say "    failed; the end of $log:"
        tail -n 40 "$log" | sed 's/^/    | /'
        exit "$status"
    fi
    local took=$((SECONDS - began))
    [ "$took" -lt 2 ] || say "    done in $took s"
}
