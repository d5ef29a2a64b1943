# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds one CMake preset.

# When a package of the system's is updated, its headers have the time at which it was made. Ninja
# compares times and would keep what was precompiled of other headers, which clang then refuses. The
# moment at which a file was put in its place tells.
forget_stale_headers() {
    local precompiled="$build/$1/language-folders/cpp/preamble.pch" list="$build/$1/kernels/cpp/preamble.d"
    if [ -e "$precompiled" ] && [ -e "$list" ] &&
        tr -s ' \\' '\n' <"$list" | grep '^/usr/' |
        xargs -r sh -c 'find -L "$@" -maxdepth 0 -cnewer "$0"' "$precompiled" 2>/dev/null | grep -q .; then
        rm "$precompiled"
    fi
}

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
    forget_stale_headers "$preset"
    # Ninja would run one more than there are processors: then each unit takes longer (decision 0001).
    stage "build-$preset" "Building the $title" \
        cmake --build "$build/$preset" --parallel "$(nproc)" "${targets[@]}"
}
