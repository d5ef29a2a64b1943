# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds one CMake preset.

# compile PRESET TITLE [-DNAME=VALUE...] [TARGET...]: without targets, everything.
compile() {
    local preset="$1" title="$2"
    shift 2
    local settings=() targets=()
    while [ "$#" -gt 0 ]; do
        case "$1" in
            -D*) settings+=("$1") ;;
            *) targets+=(--target "$1") ;;
        esac
        shift
    done
    # Clones share ccache's results: it sees paths relative to the clone.
    export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
    stage "configure-$preset" "Configuring the $title" \
        cmake --preset "$preset" --log-level=NOTICE "${settings[@]}"
    # Ninja would run one more than there are processors: then each unit takes longer (decision 0001).
    stage "build-$preset" "Building the $title" \
        cmake --build "$build/$preset" --parallel "$(nproc)" "${targets[@]}"
}
