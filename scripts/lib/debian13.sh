#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What scripts/test-debian13 does in its Debian 13: build [TARGET...], test [CTEST-ARGUMENT...] or session.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$lib/environments.sh"
. "$lib/compile.sh"

case "$1" in
    build)
        shift
        [ "$#" -gt 0 ] || set -- cellkeep cellkeep_kernel_python cellkeep_kernel_driver \
            cellkeep_sandbox_launcher tests/unit/all tests/sandbox/all
        compile release "release build and its tests" -DBUILD_TESTING=ON "$@"
        ;;
    test)
        shift
        [ "$#" -gt 0 ] || set -- -L 'unit|sandbox'
        ctest --test-dir "$build/release" --output-on-failure --no-tests=error "$@"
        ;;
    session)
        make_environments python
        printf '%s\n' 'import sys, pandas as pd' \
            'frame = pd.DataFrame({"price": [3, 5]})' \
            'print("Python", sys.version.split()[0], "sum", int(frame.price.sum()))' >"$build/analysis.py"
        "$build/release/bin/cellkeep" run "$build/analysis.py"
        ;;
    *) fail "$1 is nothing that can be done in a Debian 13" ;;
esac
