// SPDX-License-Identifier: Apache-2.0
//
// import and require in cells: as from a file in the working directory, then from the packages of
// the environment.
'use strict';

const { Object, Reflect, SyntaxError, process } = globalThis;
const nodeModule = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

// The file that a cell would be.
const cellFile = () => path.join(process.cwd(), 'cell.js');
const isBare = (name) => !/^(\.{0,2}\/|[a-z][a-z+.-]*:)/i.test(name);

class Modules {
    // packages: a folder that holds node_modules. own: modules of the kernel's, by name.
    constructor(packages, own) {
        this.own = own;
        this.packagesFile = path.join(packages, 'cell.js');
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
            try {
                return await resolve(specifier, pathToFileURL(this.packagesFile).href);
            } catch {
                throw error;
            }
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
        const { own: modules, packagesFile } = this;
        const find = (name, options) => {
            try {
                return nodeModule.createRequire(cellFile()).resolve(name, options);
            } catch (error) {
                if (error.code !== 'MODULE_NOT_FOUND' || !isBare(name)) {
                    throw error;
                }
                try {
                    return nodeModule.createRequire(packagesFile).resolve(name, options);
                } catch {
                    throw error;
                }
            }
        };
        const own = nodeModule.createRequire(packagesFile);
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
