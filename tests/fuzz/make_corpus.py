#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tests/fuzz/corpus. The files are checked in; run this after changing it.

The framings are written out here once more, independently of the code under test.
"""

import hashlib
import hmac
import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"
KEY = b"key"


def text(value):
    return json.dumps(value, separators=(",", ":")).encode()


HEADER = text(
    {
        "msg_id": "0f0e4a52-6f3e-4b7e-9d0b-0c8a1f5b7c11",
        "session": "client-1",
        "username": "user",
        "date": "2026-11-21T20:59:40.000123Z",
        "msg_type": "execute_request",
        "version": "5.5",
        "subshell_id": None,
    }
)
SMALL = text({"msg_id": "m", "msg_type": "status"})
CONTENT = text({"code": "1+1", "silent": False, "user_expressions": {}, "allow_stdin": True})


def frame(*parts, count=None, shift=0):
    """A v1 frame; count and shift make wrong ones."""
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    words = [len(offsets) if count is None else count, *(offset + shift for offset in offsets)]
    return struct.pack(f"<{len(words)}Q", *words) + b"".join(parts)


def link(*frames):
    return b"".join(struct.pack("<I", len(each)) + each for each in frames)


def blocks(mode, *frames):
    return bytes([mode]) + b"".join(struct.pack("<H", len(each)) + each for each in frames)


def sign(*parts):
    return hmac.new(KEY, b"".join(parts), hashlib.sha256).hexdigest().encode()


def frames_of_messages():
    return {
        "execute_request": frame(b"shell", HEADER, b"{}", b"{}", CONTENT),
        "status": frame(b"iopub", SMALL, HEADER, b"{}", text({"execution_state": "idle"})),
        "comm_with_buffers": frame(b"iopub", SMALL, b"{}", b"{}", b"{}", b"\x00\xff" * 8, b""),
        "input_reply": frame(b"stdin", SMALL, HEADER, b"{}", text({"value": "caf\u00e9"})),
        "control": frame(b"control", SMALL, b"{}", b'{"a":[1,-2.5e3,null,true]}', b"{}"),
    }


def wrong_frames():
    good = frame(b"shell", SMALL, b"{}", b"{}", b"{}")
    return {
        "empty": b"",
        "truncated_table": good[:20],
        "truncated_payload": good[:-1],
        "trailing": good + b"x",
        "too_few_parts": frame(b"shell", SMALL, b"{}", b"{}"),
        "count_zero": frame(b"shell", SMALL, b"{}", b"{}", b"{}", count=0),
        "count_huge": frame(b"shell", SMALL, b"{}", b"{}", b"{}", count=2**64 - 1),
        "shifted": frame(b"shell", SMALL, b"{}", b"{}", b"{}", shift=1),
        "unknown_channel": frame(b"hb", SMALL, b"{}", b"{}", b"{}"),
        "bad_header": frame(b"shell", b"[]", b"{}", b"{}", b"{}"),
        "empty_parts": frame(b"", b"", b"", b"", b""),
    }


def legacy(message, *buffers, count=None, shift=0):
    """The WebSocket framing before v1; count and shift make wrong ones."""
    parts = (text(message), *buffers)
    offsets = [4 * (len(parts) + 1)]
    for part in parts[:-1]:
        offsets.append(offsets[-1] + len(part))
    words = [len(parts) if count is None else count, *(offset + shift for offset in offsets)]
    return struct.pack(f">{len(words)}I", *words) + b"".join(parts)


def websocket_messages():
    v1, legacy_text, legacy_binary = b"\x03", b"\x00", b"\x02"
    header = json.loads(HEADER)
    good = {"header": header, "parent_header": {}, "metadata": {}, "content": json.loads(CONTENT)}
    return {
        **{f"v1_{name}": v1 + each for name, each in frames_of_messages().items()},
        "v1_nothing_given": v1 + frame(b"", SMALL, b"", b"null", b""),
        "v1_content_is_a_list": v1 + frame(b"shell", SMALL, b"{}", b"{}", b"[]"),
        "v1_text": b"\x01" + frame(b"shell", SMALL, b"{}", b"{}", b"{}"),
        "text": legacy_text + text({**good, "channel": "shell", "buffers": []}),
        "text_header_only": legacy_text + text({"header": header}),
        "text_odd": legacy_text + text({**good, "channel": None, "buffers": {}, "metadata": None}),
        "text_unknown_channel": legacy_text + text({**good, "channel": 7}),
        "text_of_a_proxy": legacy_text + legacy(good, b"buffer"),
        "binary": legacy_binary + legacy({**good, "channel": "control"}, b"\x00\xff", b"", b"x"),
        "binary_without_buffers": legacy_binary + legacy(good),
        "binary_count_zero": legacy_binary + legacy(good, count=0),
        "binary_count_huge": legacy_binary + legacy(good, count=2**32 - 1),
        "binary_shifted": legacy_binary + legacy(good, b"x", shift=1),
    }


def connection_infos():
    good = {
        "transport": "tcp",
        "ip": "127.0.0.1",
        "shell_port": 50001,
        "iopub_port": 50002,
        "stdin_port": 50003,
        "control_port": 50004,
        "hb_port": 50005,
        "key": "b8d2f6a0-1c6b3f1b2c0e5a",
        "signature_scheme": "hmac-sha256",
        "kernel_name": "python3",
    }
    return {
        "tcp": text(good),
        "ipc": text({**good, "transport": "ipc", "ip": "/run/k", "signature_scheme": "hmac-sha512"}),
        "string_ports": text({**good, "shell_port": "1", "hb_port": "65535"}),
        "wrong_port": text({**good, "shell_port": -1}),
        "missing_key": text({name: good[name] for name in good if name != "key"}),
        "inproc": text({**good, "transport": "inproc"}),
    }


def json_texts():
    return {
        "everything": text({"a": [1, -2, 3.5, 1e300, True, False, None, "\u00e9\U0001f600"], "": {}}),
        "big_numbers": b"[18446744073709551615,18446744073709551616,-9223372036854775808,5e-324]",
        "repeated_key": b'{"a":{"x":1},"a":2}',
        "deep": b"[" * 300,
        "nul": b"1\x00",
        "surrogate": b'"\\ud800"',
        "bad_utf8": b'"\xed\xa0\x80"',
        "nan": b"NaN",
    }


def signed_messages():
    parts = (HEADER, b"{}", b"{}", CONTENT)
    good = (b"client", b"<IDS|MSG>", sign(*parts), *parts)
    return {
        "signed": blocks(0, *good),
        "signed_with_buffers": blocks(0, *good, b"\x00\x01", b""),
        "sign_for_me": blocks(1, b"<IDS|MSG>", b"", SMALL, HEADER, b"{}", b"{}"),
        "sign_sha512": blocks(3, b"router", b"client", b"<IDS|MSG>", b"", SMALL, b"{}", b"{}", b"{}"),
        "sign_md5": blocks(5, b"<IDS|MSG>", b"", SMALL, b"{}", b"{}", b"{}", b"buffer"),
        "sign_bad_json": blocks(1, b"<IDS|MSG>", b"", b"not JSON", b"{}", b"{}", b"{}"),
        "wrong_signature": blocks(0, b"<IDS|MSG>", b"0" * 64, *parts),
        "no_delimiter": blocks(0, b"client", sign(*parts), *parts),
        "too_few": blocks(1, b"<IDS|MSG>", b"", SMALL, b"{}", b"{}"),
    }


def link_streams():
    messages = list(frames_of_messages().values())
    return {
        "one_by_one": b"\x00" + link(*messages),
        "odd_chunks": b"\x06" + link(*messages),
        "incomplete": b"\xff" + link(*messages)[:-3],
        "zero_length": b"\x02" + link(b"ok") + b"\x00\x00\x00\x00",
        "huge_length": b"\x02" + link(b"ok") + b"\xff\xff\xff\xff",
        "at_limit": b"\x02" + struct.pack("<I", 128 << 20) + b"abc",
    }


def client_hello(*extensions):
    """A TLS record with a ClientHello (RFC 8446, section 4.1.2)."""
    every = b"".join(struct.pack(">HH", kind, len(data)) + data for kind, data in extensions)
    body = b"\x03\x03" + b"r" * 32 + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    body += struct.pack(">H", len(every)) + every
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\x03\x01" + struct.pack(">H", len(message)) + message


def egress_bytes():
    name = struct.pack(">H", 14) + b"\x00" + struct.pack(">H", 11) + b"example.org"
    post = b"POST http://example.org/a HTTP/1.1\r\nHost: example.org\r\n"
    return {
        "target_name": b"\x00\x00Example.org:443",
        "target_wildcard": b"\x00\x00*.example.org:8443",
        "target_address": b"\x00\x00[2606:4700::1111]:443",
        "target_mapped": b"\x00\x00[::ffff:127.0.0.1]:80",
        "target_hexadecimal": b"\x00\x000x7f.1:80",
        "target_user": b"\x00\x00user@example.org:443",
        "target_url": b"\x00\x00http://example.org:80/path?query",
        "hello": b"\x01\x00" + client_hello((0, name), (10, b"\x00\x02\x00\x1d")),
        "hello_hidden": b"\x01\x00" + client_hello((0, name), (0xFE0D, b"x")),
        "hello_twice": b"\x01\x00" + client_hello((0, name), (0, name)),
        "request_length": b"\x02\x02" + post + b"Content-Length: 5\r\n\r\nhello",
        "request_chunks": b"\x02\x00"
        + post
        + b"Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n",
        "request_both": b"\x02\x07"
        + post
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "request_tunnel": b"\x02\x07CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
        "answer": b"\x03\x01HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "answer_to_the_end": b"\x03\x01HTTP/1.0 200 OK\r\n\r\nok",
    }


def scanned_contents():
    """A slice's bytes less one, then the text."""
    display = {"data": {"text/plain": "\u20ac", "n": [1, -2.5e3, None]}, "transient": {"display_id": "d"}}
    error = {"ename": "E", "evalue": "v", "traceback": ["\x1b[31mred", 'a"b\\'], "execution_count": 3}
    contents = {
        "display": text(display),
        "stream": text({"name": "stdout", "text": "line\n\U0001f600 \u00e9\\"}),
        "stream_utf8": json.dumps({"name": "stdout", "text": "\U0001f600\u00e9"}, ensure_ascii=False).encode(),
        "error": text(error),
        "escaped_key": b'{"d\\u0061ta":{"a":1},"data":2}',
        "odd_traceback": b'{"traceback":["a",1,["b"],{"c":"d"}]}',
        "spaced": b' {\r\n"text" :\t"x" , "data":[ ] }\n',
        "overflow": b"[1e400]",
        "lone_surrogate": b'"\\ud800"',
        "byte_order_mark": b"\xef\xbb\xbf{}",
        "cut_off": b'{"text":"abc',
    }
    return {name: bytes([index]) + content for index, (name, content) in enumerate(contents.items())}


def main():
    seeds = {
        "channels_framing": websocket_messages(),
        "connection_info": connection_infos(),
        "egress": egress_bytes(),
        "frame": {**frames_of_messages(), **wrong_frames()},
        "json": json_texts(),
        "json_scanner": scanned_contents(),
        "link_decoder": link_streams(),
        "message": {**frames_of_messages(), **wrong_frames()},
        "signer": signed_messages(),
    }
    for target, inputs in seeds.items():
        directory = CORPUS / target
        directory.mkdir(parents=True, exist_ok=True)
        for name, seed in inputs.items():
            (directory / name).write_bytes(seed)


if __name__ == "__main__":
    main()
