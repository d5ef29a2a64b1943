// SPDX-License-Identifier: Apache-2.0
//
// import and require in cells: as from a file in the working directory, then from the packages of
// the session's environment, then from those of the kernel's own.
'use strict';

const { Object, Reflect, SyntaxError, process } = globalThis;
const nodeModule = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

// The file that a cell would be.
const cellFile = () => path.join(process.cwd(), 'cell.js');
const isBare = (name) => !/^(\.{0,2}\/|[a-z][a-z+.-]*:)/i.test(name);

class Modules {
    // packages: folders that hold node_modules, the last one the kernel's. own: modules of the
    // kernel's, by name.
    constructor(packages, own) {
        this.own = own;
        this.packagesFiles = packages.map((folder) => path.join(folder, 'cell.js'));
        this.resolver = import(pathToFileURL(path.join(__dirname, 'resolve.mjs')).href);
    }

    async resolve(specifier) {
        if (nodeModule.isBuiltin(specifier)) {
            return specifier;
        }
        const { resolve } = await this.resolver;
        try {
            return await resolve(specifier, pathToFileURL(cellFile()).href);
        } catch (error) {
            if (error.code !== 'ERR_MODULE_NOT_FOUND' || !isBare(specifier)) {
                throw error;
            }
            for (const file of this.packagesFiles) {
                try {
                    return await resolve(specifier, pathToFileURL(file).href);
                } catch (other) {
                    // A package that is there and does not offer what was asked for is an answer.
                    if (other.code !== 'ERR_MODULE_NOT_FOUND') {
                        throw other;
                    }
                }
            }
            throw error;
        }
    }

    // import(specifier, options)
    async import(specifier, options) {
        if (Object.hasOwn(this.own, `${specifier}`)) {
            return this.own[specifier];
        }
        const attributes = options?.with ?? options?.assert;
        const url = await this.resolve(`${specifier}`);
        return import(url, attributes && { with: attributes, assert: attributes });
    }

    // [namespace, ...values] of an import statement.
    async load(specifier, names, attributes) {
        const options = Object.keys(attributes).length > 0 ? { with: attributes } : undefined;
        const space = await this.import(specifier, options);
        return [
            space,
            ...names.map((name) => {
                if (!Reflect.has(space, name)) {
                    const error = new SyntaxError(
                        `The requested module '${specifier}' does not provide an export named '${name}'`);
                    Object.defineProperty(error, 'code', { value: 'ERR_NO_SUCH_EXPORT' });
                    throw error;
                }
                return space[name];
            }),
        ];
    }

    makeRequire(mainModule) {
        const { own: modules, packagesFiles } = this;
        const find = (name, options) => {
            try {
                return nodeModule.createRequire(cellFile()).resolve(name, options);
            } catch (error) {
                if (error.code !== 'MODULE_NOT_FOUND' || !isBare(name)) {
                    throw error;
                }
                for (const file of packagesFiles) {
                    try {
                        return nodeModule.createRequire(file).resolve(name, options);
                    } catch (other) {
                        if (other.code !== 'MODULE_NOT_FOUND') {
                            throw other;
                        }
                    }
                }
                throw error;
            }
        };
        const own = nodeModule.createRequire(packagesFiles.at(-1));
        function require(name) {
            if (Object.hasOwn(modules, `${name}`)) {
                return modules[name];
            }
            return typeof name === 'string' && !nodeModule.isBuiltin(name) ? own(find(name)) : own(name);
        }
        require.resolve = find;
        require.cache = own.cache;
        require.extensions = own.extensions;
        require.main = mainModule;
        return require;
    }

    // import.meta
    makeMeta() {
        const meta = Object.create(null);
        return Object.defineProperties(meta, {
            url: { get: () => pathToFileURL(cellFile()).href, enumerable: true },
            dirname: { get: () => process.cwd(), enumerable: true },
            filename: { get: cellFile, enumerable: true },
            resolve: { value: (specifier) => pathToFileURL(nodeModule.createRequire(cellFile()).resolve(specifier)).href, enumerable: true },
        });
    }
}

module.exports = { Modules, cellFile };
