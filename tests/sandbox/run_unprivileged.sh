#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all sandbox tests again as an ordinary user: the rootless mode. Exit code 77: not possible here.
set -eu
program=$1
if [ "$(id -u)" != 0 ]; then
    echo "skipped: not root, so the other tests are the rootless ones" >&2
    exit 77
fi
cd /
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
if ! $as_nobody test -x "$program"; then
    echo "skipped: an ordinary user cannot reach $program" >&2
    exit 77
fi
exec $as_nobody "$program"
