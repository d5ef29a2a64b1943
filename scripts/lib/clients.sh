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
