# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages a list file names, only those that are missing. Where Debian 12 and 13 have
# different names, an entry is a choice: a | b.

any_installed() {
    local package
    for package in ${1//|/ }; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ] || return 0
    done
    return 1
}

# Entries of which no package is installed, a choice as a|b.
missing_packages() {
    local entry
    sed 's/#.*//; s/[[:space:]]//g' "$@" | while read -r entry; do
        [ -z "$entry" ] || any_installed "$entry" || printf '%s\n' "$entry"
    done
}

# Of each entry the first package that this Debian has; the last one if it has none, so that apt names it.
pick_packages() {
    local entry package
    for entry in "$@"; do
        for package in ${entry//|/ }; do
            ! apt-cache show "$package" >/dev/null 2>&1 || break
        done
        printf '%s\n' "$package"
    done
}

# Runs apt-get as root: directly, or through sudo, which may ask for a password on a terminal only.
privileged_apt() {
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    if [ "$(id -u)" -ne 0 ]; then
        if [ -t 2 ]; then apt=(sudo "${apt[@]}"); else apt=(sudo -n "${apt[@]}"); fi
    fi
    "${apt[@]}" "$@"
}

install_and_refresh() {
    local packages
    privileged_apt update
    mapfile -t packages < <(pick_packages "$@")
    privileged_apt install --no-install-recommends "${packages[@]}"
}

# install_packages LIST...
install_packages() {
    command -v dpkg-query >/dev/null ||
        fail "this is not a Debian system. Install the equivalents of the packages in: $*"
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        fail "packages are missing and neither root nor sudo is at hand. As root, run:
    apt-get install --no-install-recommends $(pick_packages "${missing[@]}" | tr '\n' ' ')"
    fi
    stage packages "Installing ${#missing[@]} Debian packages: ${missing[*]}" \
        install_and_refresh "${missing[@]}"
}
