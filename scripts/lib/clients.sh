# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What our own clients are built and tested with: a locked Python environment and two sets of locked
# Node packages; and the environments of agents', MCP and E2B clients, of our plug-ins and of
# web applications. To be sourced after environments.sh and npm.sh.

# The environment of the Python client and of the contract's tests.
make_clients_environment() {
    make_environment clients "$build/environments/clients" \
        "$root/tests/environment/clients/requirements.lock"
}

# The code executors of agent frameworks, and MCP servers for Jupyter. Only the full tests need them.
make_agents_environment() {
    make_environment agents "$build/environments/agents" "$root/tests/environment/agents/requirements.lock"
}

# The official MCP clients. Only the full tests need them.
make_mcp_environment() {
    make_environment mcp "$build/environments/mcp" "$root/tests/environment/mcp/requirements.lock"
}

# E2B's clients. Only the full tests need them.
make_e2b_environment() {
    make_environment e2b "$build/environments/e2b" "$root/tests/environment/e2b/requirements.lock"
}

# The frameworks that our plug-ins put a sandbox under. Only the full tests need them.
make_integrations_environment() {
    make_environment integrations "$build/environments/integrations" \
        "$root/tests/environment/integrations/requirements.lock"
}

# A CPython that Harbor runs on: the one that CELLKEEP_TEST_PYTHON names, or the first on PATH that really runs.
newer_python() {
    local candidate found
    for candidate in ${CELLKEEP_TEST_PYTHON:-python3.12 python3.13 python3.14}; do
        found=$(command -v "$candidate") || continue
        "$found" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || continue
        printf '%s\n' "$found"
        return
    done
    return 1
}

fill_harbor_environment() {
    local environment="$1" lock="$2" python="$3"
    rm -rf "$environment"
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps \
        --only-binary :all: --progress-bar off --require-hashes -r "$lock"
    "$environment/bin/python" -m pip check --disable-pip-version-check
}

# Harbor needs CPython 3.12, which Debian 12 has not. It is not made if this machine has none; its test is then
# skipped and says so. Only the full tests need it.
make_harbor_environment() {
    local environment="$build/environments/harbor" lock="$root/tests/environment/harbor/requirements.lock"
    local python stamp
    if ! python=$(newer_python); then
        [ -z "${CELLKEEP_TEST_PYTHON:-}" ] || fail "CELLKEEP_TEST_PYTHON=$CELLKEEP_TEST_PYTHON is no CPython 3.12 or newer"
        rm -rf "$environment"
        return 0
    fi
    mkdir -p "$build/environments"
    (
        flock 9
        stamp=$({ printf '%s\n' "$environment" "$python"; "$python" -VV; cat "$lock"; } | sha256sum | cut -d ' ' -f 1)
        if [ "$(cat "$environment/.made-from" 2>/dev/null)" != "$stamp" ]; then
            stage environment-harbor "Installing the locked harbor environment ($(grep -c '==' "$lock") packages)" \
                fill_harbor_environment "$environment" "$lock" "$python"
            printf '%s\n' "$stamp" >"$environment/.made-from"
        fi
    ) 9>"$build/environments/.lock"
}

# What the web applications are made of that the browser tests start in a session. Only the full tests
# need it.
make_previews_environment() {
    make_environment previews "$build/environments/previews" "$root/tests/environment/previews/requirements.lock"
}

# The schemas of Compose and of Kubernetes. Only the full tests need them.
make_manifests_environment() {
    make_environment manifests "$build/environments/manifests" "$root/tests/environment/manifests/requirements.lock"
}

# The compiler and the type generator of the TypeScript client.
make_typescript_environment() {
    make_node_packages typescript "$root/clients/typescript" "$build/environments/typescript"
}
