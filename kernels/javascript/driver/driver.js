// SPDX-License-Identifier: Apache-2.0
//
// The JavaScript and TypeScript driver: node [flags] driver.js --packages DIR [--typescript]
// This thread runs user code and nothing else does. README.md says how the two threads share the work.
//
// User code may redefine globals like `JSON` for all code in this thread. So these files take the
// globals that they use when they are loaded.
'use strict';

const { process } = globalThis;
const nodeModule = require('node:module');
const path = require('node:path');

const NODE_MAJOR_MIN = 18;

function options(list) {
    const found = { packages: '', typescript: false };
    for (let i = 0; i < list.length; i++) {
        if (list[i] === '--packages' && i + 1 < list.length) {
            found.packages = list[++i];
        } else if (list[i] === '--typescript') {
            found.typescript = true;
        } else {
            throw new Error(`unknown argument ${list[i]}`);
        }
    }
    return found;
}

function main() {
    if (Number(process.versions.node.split('.')[0]) < NODE_MAJOR_MIN) {
        process.stderr.write(`Node.js ${NODE_MAJOR_MIN} or later is needed; this is ${process.version}.\n`);
        process.exit(69);
    }
    const { packages, typescript } = options(process.argv.slice(2));
    // For this thread, the front thread and what user code starts: CommonJS packages of the environment.
    const modules = path.join(packages, 'node_modules');
    const shared = (process.env.NODE_PATH ?? '').split(path.delimiter).filter(Boolean);
    // Imports look for a folder of this name alone.
    const known = shared.filter((folder) => path.isAbsolute(folder) && path.basename(folder) === 'node_modules');
    process.env.NODE_PATH = [modules, ...shared].join(path.delimiter);
    nodeModule._initPaths();
    process.argv.length = 1;
    const { Session } = require('./session');
    const session = new Session([...known.map(path.dirname), packages], typescript);
    // This driver has loaded what it uses. For user code those of the session's environment are first.
    process.env.NODE_PATH = [...shared, modules].join(path.delimiter);
    nodeModule._initPaths();
    session.start();
}

main();
