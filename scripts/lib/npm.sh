# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The locked Node packages of the browser tests, made as environments.sh makes Python's: exactly what
# package-lock.json names, hashes checked, a stamp written last. No browser is downloaded; the tests
# drive Debian's Chromium.

node_major_min=18 # Debian 12's; playwright-core 1.61 is the last that runs on it

# Says which package list gives this machine a Node.js, if it has none that is new enough. One that
# is there stays: Debian's npm would not install beside another maker's Node.js.
node_package_list() {
    local major
    major=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\)\..*/\1/p')
    if [ "${major:-0}" -lt "$node_major_min" ] || ! command -v npm >/dev/null; then
        printf '%s\n' "$lib/packages-node.txt"
    fi
}

node_packages_stamp() {
    {
        printf '%s\n' "$node_environment"
        node --version
        cat "$lib/npm.sh" "$root/tests/browser/package.json" "$root/tests/browser/package-lock.json" \
            "$root/tests/browser/.npmrc"
    } | sha256sum | cut -d ' ' -f 1
}

fill_node_environment() {
    rm -rf "$node_environment"
    mkdir -p "$node_environment"
    cp "$root"/tests/browser/{package.json,package-lock.json,.npmrc} "$node_environment"
    (cd "$node_environment" && npm ci --no-progress)
}

make_node_environment() {
    local stamp stamp_file="$node_environment/.made-from"
    mkdir -p "$build/environments"
    (
        flock 9
        stamp=$(node_packages_stamp)
        if [ "$(cat "$stamp_file" 2>/dev/null)" != "$stamp" ]; then
            stage environment-node \
                "Installing the locked Node packages ($(grep -c '"node_modules/' "$root/tests/browser/package-lock.json"))" \
                fill_node_environment
            printf '%s\n' "$stamp" >"$stamp_file"
        fi
    ) 9>"$build/environments/.lock-node"
}
