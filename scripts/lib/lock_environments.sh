#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes every requirements.lock again from its requirements.in: the newest releases that run on
# Debian 12's CPython 3.11, with the hash of every file; Harbor's needs 3.12. An excludes.txt beside
# requirements.in names what is left out. With arguments: only those folders'. For maintainers; nothing else
# runs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
/usr/bin/python3 -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet uv

for folder in ${*:-kernels/python/environment kernels/foreign/environment scripts/lib/package_cache tests/environment tests/environment/bench \
    tests/environment/agents tests/environment/e2b tests/environment/harbor tests/environment/integrations \
    tests/environment/kernels tests/environment/lab tests/environment/manifests tests/environment/mcp tests/environment/previews}; do
    version=3.11
    [ "$folder" != tests/environment/harbor ] || version=3.12
    (
        cd "$folder"
        left_out=()
        [ ! -f excludes.txt ] || left_out=(--excludes excludes.txt)
        # Neither an index's address nor a folder of this machine may enter the file.
        "$scratch/venv/bin/uv" pip compile --quiet --upgrade --python /usr/bin/python3 \
            --python-version "$version" --python-platform x86_64-manylinux_2_28 --only-binary :all: \
            "${left_out[@]}" --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
            --output-file requirements.lock requirements.in
    )
done
