# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian systems in folders, in which this tree is built and tested: $build/NAME/root, kept for the next run.

other_tree=/srv/cellkeep

# The packages of a list, of each choice the last one: that of the newer Debian.
names_in() { sed 's/#.*//; s/[[:space:]]//g; /^$/d; s/.*|//' "$@"; }

# make_other_system NAME SUITE OPTION-OR-PACKAGE...: under another name until it is whole.
make_other_system() {
    local name="$1" suite="$2"
    shift 2
    rm -rf "${build:?}/$name"
    mkdir -p "$build/$name"
    "$system_python" "$lib/package/debian_root.py" "$suite" "$build/$name/new" "$@"
    # What this machine trusts, for packages of Python.
    cp -L /etc/ssl/certs/ca-certificates.crt "$build/$name/new/etc/ssl/certs/ca-certificates.crt"
    mv "$build/$name/new" "$build/$name/root"
}

# copy_tree NAME: without build/. Files that have not changed keep their times, so that only what changed is
# compiled again.
copy_tree() {
    local target="$build/$1/root$other_tree"
    mkdir -p "$target"
    find "$target" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
    git ls-files -z --cached --others --exclude-standard |
        xargs -0 sh -c 'for path; do [ ! -e "$path" ] || printf "%s\0" "$path"; done' sh |
        tar --null --no-recursion -T - -c | tar -C "$target" -x
}

# enter NAME COMMAND...: as on a machine of its own, but for the kernel and the network. COMMAND is a script of
# this folder.
enter() {
    local name="$1" script="$2"
    shift 2
    "$system_python" "$root/tests/package/in_root.py" "$build/$name/root" \
        "$other_tree/scripts/lib/$script" "$@"
}
