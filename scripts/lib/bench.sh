# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The peers that Cellkeep is measured beside, in an environment of their own: neither sessions nor the
# tests' clients need the packages of Jupyter's servers. To be sourced after
# environments.sh and npm.sh. The peers that are programs of Node lie beside it, where
# tests/benchmark/languages.py looks for them.

make_bench_environment() {
    make_environment bench "$bench_environment" "$root/tests/environment/bench/requirements.lock"
    make_node_packages bench-node "$root/tests/environment/bench/node" "$bench_environment-node"
}

bench_environment="$build/environments/bench"
readonly bench_environment
