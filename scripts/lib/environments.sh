# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the locked Python environments. Each is a virtual environment of Debian's CPython holding
# exactly what its requirements.lock names, hashes checked. A stamp, written last, says what it was
# made from: an environment without the right stamp is thrown away and made again, so one whose
# installation was interrupted is never used.

# What the environment at $1 must have been made from. First the hash of its lock $2, which is what a
# session reports as its environment's digest; then the recipe: these scripts, the interpreter, and
# the path, because a virtual environment's programs name it.
environment_stamp() {
    sha256sum <"$2" | cut -d ' ' -f 1
    {
        printf '%s\n' "$1"
        "$system_python" -VV
        cat "$lib/environments.sh" "$lib/font_cache.py"
    } | sha256sum | cut -d ' ' -f 1
}

fill_environment() {
    local environment="$1" lock="$2"
    rm -rf "$environment"
    mkdir -p "$(dirname "$environment")"
    "$system_python" -m venv "$environment"
    # Compiled here because a sandbox sees the environment read-only and could not keep bytecode.
    "$environment/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps \
        --only-binary :all: --compile --progress-bar off --require-hashes -r "$lock"
    "$environment/bin/python" -m pip check --disable-pip-version-check
    if [ -d "$environment"/lib/python3*/site-packages/matplotlib ]; then
        "$environment/bin/python" "$lib/font_cache.py" "$environment/share/cellkeep/matplotlib"
    fi
}

# make_environment NAME DIRECTORY LOCK
make_environment() {
    local name="$1" environment="$2" lock="$3" stamp
    local stamp_file="$environment/.made-from"
    mkdir -p "$build/environments"
    (
        # Two scripts started at once must not fill the same environment.
        flock 9
        stamp=$(environment_stamp "$environment" "$lock")
        if [ "$(cat "$stamp_file" 2>/dev/null)" != "$stamp" ]; then
            stage "environment-$name" "Installing the locked $name environment ($(grep -c '==' "$lock") packages)" \
                fill_environment "$environment" "$lock"
            printf '%s\n' "$stamp" >"$stamp_file"
        fi
    ) 9>"$build/environments/.lock"
}

# make_environments [NAME...]: of python (a session's), foreign (the bridge to other Jupyter kernels),
# tools (the clients outside), lab (JupyterLab and the notebook runners) and kernels (some of those other
# kernels); the first three unless told.
make_environments() {
    local name
    [ "$#" -gt 0 ] || set -- python foreign tools
    for name in "$@"; do
        case "$name" in
            python) make_environment python "$python_environment" "$root/kernels/python/environment/requirements.lock" ;;
            foreign) make_environment foreign "$build/environments/foreign" "$root/kernels/foreign/environment/requirements.lock" ;;
            kernels) make_environment kernels "$build/environments/kernels" "$root/tests/environment/kernels/requirements.lock" ;;
            tools) make_environment tools "$tools_environment" "$root/tests/environment/requirements.lock" ;;
            lab) make_environment lab "$lab_environment" "$root/tests/environment/lab/requirements.lock" ;;
        esac
    done
}
