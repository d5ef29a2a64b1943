# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The locked Node packages of the JavaScript kernels, of the browser tests, of our TypeScript client, of
# another maker's kernel for the tests, of MCP's conformance suite, of E2B's clients, of the Vercel AI SDK and of the
# documentation's viewer, made as environments.sh makes Python's: exactly what package-lock.json names, hashes checked,
# a stamp written last. No browser is downloaded; the tests drive Debian's Chromium.

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

# What the packages of folder $1, installed at $2, must have been made from.
node_packages_stamp() {
    {
        printf '%s\n' "$2"
        node --version
        cat "$lib/npm.sh" "$1/package.json" "$1/package-lock.json" "$1/.npmrc"
    } | sha256sum | cut -d ' ' -f 1
}

fill_node_packages() {
    rm -rf "$2"
    mkdir -p "$2"
    cp "$1/package.json" "$1/package-lock.json" "$1/.npmrc" "$2"
    (cd "$2" && npm ci --no-progress)
}

# make_node_packages NAME FOLDER ENVIRONMENT: what the folder's lock names, at the environment's path.
make_node_packages() {
    local name="$1" folder="$2" environment="$3" stamp stamp_file="$3/.made-from"
    mkdir -p "$build/environments"
    (
        flock 9
        stamp=$(node_packages_stamp "$folder" "$environment")
        if [ "$(cat "$stamp_file" 2>/dev/null)" != "$stamp" ]; then
            stage "environment-$name" \
                "Installing the locked $name packages ($(grep -c '"node_modules/' "$folder/package-lock.json"))" \
                fill_node_packages "$folder" "$environment"
            printf '%s\n' "$stamp" >"$stamp_file"
        fi
    ) 9>"$build/environments/.lock-node"
}

# What the JavaScript and TypeScript kernels are made of.
make_javascript_environment() {
    make_node_packages javascript "$root/kernels/javascript/environment" "$build/environments/javascript"
}

# What the browser tests drive.
make_node_environment() {
    make_node_packages node "$root/tests/browser" "$node_environment"
}

# A Jupyter kernel of another maker's, beside those of the kernels environment.
make_kernels_node_environment() {
    make_node_packages kernels-node "$root/tests/environment/kernels/node" "$build/environments/kernels-node"
}

# The Model Context Protocol's conformance suite, and a Node.js that is new enough for it.
make_mcp_node_environment() {
    make_node_packages mcp-node "$root/tests/environment/mcp/node" "$build/environments/mcp-node"
}

# E2B's clients for TypeScript, and a Node.js that is new enough for them.
make_e2b_node_environment() {
    make_node_packages e2b-node "$root/tests/environment/e2b/node" "$build/environments/e2b-node"
}

# The Vercel AI SDK, and a Node.js that is new enough for it.
make_integrations_node_environment() {
    make_node_packages integrations-node "$root/tests/environment/integrations/node" "$build/environments/integrations-node"
}

# The viewer of the API's documentation, which the build puts into the program.
make_docs_viewer() {
    make_node_packages docs "$root/kernel-manager/api/docs" "$build/environments/docs"
}
