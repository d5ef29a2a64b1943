// SPDX-License-Identifier: Apache-2.0
//
// Uploads and downloads of files, with progress. A download that breaks continues where it was, of the same version
// of the file only (If-Range).

import { CellkeepError } from './errors.js';
import type { Http } from './http.js';
import type { FileEntry } from './schema.js';

export type Upload = string | Uint8Array | ArrayBuffer | Blob;
/** Bytes done so far, and bytes in all, undefined while that is not known. */
export type Progress = (done: number, total: number | undefined) => unknown;

const CHUNK_BYTES = 1 << 18;

/** Only Node.js sends a body that is a stream over HTTP/1.1; browsers want HTTP/2 for it. */
function canStream(): boolean {
    return Boolean((globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node);
}

function counted(content: Blob, onProgress: Progress): ReadableStream<Uint8Array> {
    let done = 0;
    return new ReadableStream<Uint8Array>({
        async pull(controller) {
            onProgress(done, content.size);
            if (done >= content.size) {
                controller.close();
                return;
            }
            const piece = new Uint8Array(await content.slice(done, done + CHUNK_BYTES).arrayBuffer());
            done += piece.byteLength;
            controller.enqueue(piece);
        },
    });
}

export async function upload(
    http: Http,
    path: string,
    content: Upload,
    onProgress: Progress | undefined,
): Promise<FileEntry> {
    const blob = content instanceof Blob ? content : new Blob([content as BlobPart]);
    const streamed = onProgress !== undefined && blob.size > CHUNK_BYTES && canStream();
    if (!streamed) {
        onProgress?.(0, blob.size);
    }
    const entry = await http.json<FileEntry>({
        method: 'PUT',
        path,
        headers: { 'Content-Type': 'application/octet-stream' },
        body: () => (streamed ? counted(blob, onProgress) : blob),
        repeatable: true,
    });
    if (!streamed) {
        onProgress?.(blob.size, blob.size);
    }
    return entry;
}

export async function download(
    http: Http,
    path: string,
    onProgress: Progress | undefined,
): Promise<Uint8Array> {
    let pieces: Uint8Array[] = [];
    let done = 0;
    let total: number | undefined;
    let etag: string | null = null;

    const read = async (answer: Response): Promise<void> => {
        if (answer.status === 206) {
            const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.headers.get('Content-Range') ?? '');
            if (!range || Number(range[1]) !== done) {
                throw new CellkeepError('not the range that was asked for');
            }
            total = Number(range[2]);
        } else {
            pieces = [];
            done = 0;
            etag = answer.headers.get('ETag');
            const length = answer.headers.get('Content-Length');
            total = length === null ? undefined : Number(length);
        }
        onProgress?.(done, total);
        const reader = answer.body?.getReader();
        for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
            pieces.push(piece.value);
            done += piece.value.byteLength;
            onProgress?.(done, total);
        }
    };

    const call = {
        method: 'GET',
        path,
        repeatable: true,
        get headers(): Record<string, string> {
            return done > 0 && etag ? { Range: `bytes=${done}-`, 'If-Range': etag } : {};
        },
    };
    await http.send(call, read);
    const whole = new Uint8Array(done);
    let at = 0;
    for (const piece of pieces) {
        whole.set(piece, at);
        at += piece.byteLength;
    }
    return whole;
}
