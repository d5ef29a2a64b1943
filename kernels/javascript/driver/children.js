// SPDX-License-Identifier: Apache-2.0
//
// What an interrupt means for a child process that the main thread waits for (execSync and its like):
// it gets SIGINT, as from a terminal. Children that were there before go on.
'use strict';

const { Atomics, Int32Array, Map, Number, process } = globalThis;
const childProcess = require('node:child_process');
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');

const { CHILD, OTHERS, OTHERS_MAX } = require('./channel');

const DEPTH_MAX = 100;

// Process id → that of its parent, of all processes that can be seen.
function parents() {
    const found = new Map();
    for (const entry of fs.readdirSync('/proc')) {
        if (!/^\d+$/.test(entry)) {
            continue;
        }
        try {
            const stat = fs.readFileSync(`/proc/${entry}/stat`, 'utf8');
            // After the name, which may hold anything: state, parent.
            found.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
        } catch {
            // It has ended since.
        }
    }
    return found;
}

const childPids = () => [...parents()].filter(([, parent]) => parent === process.pid).map(([pid]) => pid);

// In the main thread: records that a call waits, and for which children it does not wait.
function watchWaits(shared) {
    const control = new Int32Array(shared.control);
    for (const name of ['spawnSync', 'execSync', 'execFileSync']) {
        const call = childProcess[name];
        const watched = {
            [name](...values) {
                const others = childPids().slice(0, OTHERS_MAX);
                others.forEach((pid, index) => Atomics.store(control, OTHERS + index, pid));
                Atomics.store(control, CHILD, others.length + 1);
                try {
                    return call.apply(this, values);
                } finally {
                    Atomics.store(control, CHILD, 0);
                }
            },
        };
        childProcess[name] = watched[name];
    }
    syncBuiltinESMExports();
}

// In the front thread.
function interruptChildren(control) {
    const count = Atomics.load(control, CHILD) - 1;
    if (count < 0) {
        return;
    }
    const others = control.subarray(OTHERS, OTHERS + count);
    const processes = parents();
    // The child, and what it has started: a shell itself would wait for its command.
    const isWaitedFor = (pid) => {
        for (let steps = 0; pid !== undefined && steps < DEPTH_MAX; steps++) {
            const parent = processes.get(pid);
            if (parent === process.pid) {
                return !others.includes(pid);
            }
            pid = parent;
        }
        return false;
    };
    for (const pid of processes.keys()) {
        if (isWaitedFor(pid)) {
            try {
                process.kill(pid, 'SIGINT');
            } catch {
                // It has ended since.
            }
        }
    }
}

module.exports = { interruptChildren, watchWaits };
