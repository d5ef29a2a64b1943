#!/usr/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The first process of scripts/test-vm's machine. The whole system is the initial RAM disk; cgroups
# are v2 alone. Runs the sandbox's tests as root, then as an ordinary user to whom a cgroup was
# delegated as systemd does it, says how each went, and switches off.
export PATH=/usr/bin:/usr/sbin HOME=/tmp LC_ALL=C.UTF-8

if [ "$1" != again ]; then
    # pivot_root(2) is refused while / is the RAM disk itself, whose mount has no parent; a bind
    # mount of it over itself has one.
    mkdir -p /mnt
    mount --bind / /mnt
    cd /mnt || exit 1
    mount --move . /
    exec chroot . /usr/bin/sh /init again
fi

mkdir -p /proc /sys /dev /tmp /run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -sf /proc/self/fd /dev/fd
hostname vm 2>/dev/null
ip link set lo up 2>/dev/null || python3 -c '
import fcntl, socket, struct
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x41))'

say() { echo "vm: $*"; }
say "Linux $(uname -r), cgroup v2 alone: $(cat /sys/fs/cgroup/cgroup.controllers)"

delegate() { # NAME UID: a cgroup with all controllers, which that user may divide
    echo '+memory +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control
    mkdir -p "/sys/fs/cgroup/$1"
    for file in . cgroup.procs cgroup.subtree_control cgroup.threads; do
        chown "$2:$2" "/sys/fs/cgroup/$1/$file"
    done
}

run() { # NAME UID COMMAND...
    name=$1 uid=$2
    shift 2
    delegate "$name" "$uid"
    # In a process of its own, which joins the cgroup before it becomes the user.
    sh -c 'echo $$ >/sys/fs/cgroup/'"$name"'/cgroup.procs; shift; exec "$@"' sh - "$@" 2>&1
    say "$name ended with $?"
}

cd /
tests="$(cat /test/arguments)"
set -f
IFS='
'
# shellcheck disable=SC2086 # one argument a line
set -- $tests
unset IFS
run root 0 /test/sandbox_test "$@"
run user 1000 setpriv --reuid=1000 --regid=1000 --clear-groups /test/sandbox_test "$@"
sync
echo o >/proc/sysrq-trigger
sleep 60
