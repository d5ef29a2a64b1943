# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages a list file names, only those that are missing.

missing_packages() {
    local package
    sed 's/#.*//' "$@" | tr -s '[:space:]' '\n' | while read -r package; do
        [ -n "$package" ] || continue
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
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
    privileged_apt update && privileged_apt install --no-install-recommends "$@"
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
    apt-get install --no-install-recommends ${missing[*]}"
    fi
    stage packages "Installing ${#missing[@]} Debian packages: ${missing[*]}" \
        install_and_refresh "${missing[@]}"
}
