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
# The kernel counts some things for each user. Two runs side by side must not share a user.
user=$((50000 + $$ % 10000))
as_ordinary="setpriv --reuid=$user --regid=$user --clear-groups"
if ! $as_ordinary test -x "$program"; then
    echo "skipped: an ordinary user cannot reach $program" >&2
    exit 77
fi
exec $as_ordinary "$program"
