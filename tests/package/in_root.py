# SPDX-License-Identifier: Apache-2.0
"""Runs a command with a folder as its root file system, as on a machine of its own but for the kernel and the network.

By pivot_root(2) and not chroot(2): where the root is changed, no user namespace can be made (user_namespaces(7)), and
so no sandbox. Everything that is mounted goes with the last process.

usage: in_root.py ROOT COMMAND...        as root
"""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
set -eu
root=$1
shift
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
cd "$root"
mkdir -p .before
pivot_root . .before
cd /
umount --lazy /.before
rmdir /.before
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
"""


def arguments(root: Path, *command: object) -> list[str]:
    """What runs the command, its processes in a pid namespace that ends with it."""
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    return [*unshare, "sh", "-c", SCRIPT, "sh", str(root), *map(str, command)]


def main() -> int:
    if os.geteuid() != 0:
        sys.exit("in_root.py: only root can change the root file system")
    return subprocess.run(arguments(Path(sys.argv[1]), *sys.argv[2:])).returncode


if __name__ == "__main__":
    sys.exit(main())
