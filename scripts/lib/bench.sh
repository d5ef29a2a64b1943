# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The peers that Cellkeep is measured beside, in an environment of their own: what Jupyter's servers
# bring along is nothing that a session or the tests' clients need. To be sourced after
# environments.sh.

make_bench_environment() {
    make_environment bench "$bench_environment" "$root/tests/environment/bench/requirements.lock"
}

bench_environment="$build/environments/bench"
readonly bench_environment
