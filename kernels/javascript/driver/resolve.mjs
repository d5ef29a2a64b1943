// SPDX-License-Identifier: Apache-2.0
//
// How an import is resolved for a file that is not this one; needs --experimental-import-meta-resolve.
// A promise in Node 18, a string since.
export const resolve = (specifier, parent) => import.meta.resolve(specifier, parent);
