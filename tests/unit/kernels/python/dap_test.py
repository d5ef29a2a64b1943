# SPDX-License-Identifier: Apache-2.0
import io
import json
import socket
import threading
import unittest

from cellkeep_kernel.dap import (
    PENDING_MAX,
    Client,
    Failure,
    argument,
    check_request,
    read_message,
    response,
)


def packed(message):
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Messages(unittest.TestCase):
    def test_messages_are_read_one_by_one(self):
        stream = io.BytesIO(b"Extra: x\r\n" + packed({"a": "é"}) + packed({"b": 2}))
        self.assertEqual(read_message(stream), {"a": "é"})
        self.assertEqual(read_message(stream), {"b": 2})
        self.assertIsNone(read_message(stream))

    def test_what_is_no_message_is_refused(self):
        for data in (
            b"\r\n{}",
            b"Content-Length: x\r\n\r\n{}",
            b"Content-Length: -1\r\n\r\n{}",
            b"Content-Length: 999999999999\r\n\r\n{}",
            b"Content-Length: 2\r\n\r\n{{",
            b"C" * 5000 + b"\n",
        ):
            with self.subTest(data=data[:40]), self.assertRaises(ValueError):
                read_message(io.BytesIO(data))

    def test_a_message_that_ends_early_is_the_end(self):
        self.assertIsNone(read_message(io.BytesIO(b"Content-Length: 9\r\n\r\n{}")))

    def test_requests_are_checked(self):
        check_request({"seq": 1, "command": "x"})
        check_request({"seq": 1, "command": "x", "type": "request", "arguments": None})
        for request in (
            None, [], "x", {}, {"seq": 1}, {"command": "x"}, {"seq": "1", "command": "x"},
            {"seq": True, "command": "x"}, {"seq": 1, "command": None},
            {"seq": 1, "command": "x", "type": "event"}, {"seq": 1, "command": "x", "arguments": []},
        ):
            with self.subTest(request=request), self.assertRaises(Failure):
                check_request(request)

    def test_arguments_are_checked(self):
        request = {"seq": 1, "command": "x", "arguments": {"n": 1, "yes": True}}
        self.assertEqual(argument(request, "n", int), 1)
        for name, kind in (("yes", int), ("n", str), ("none", int)):
            with self.subTest(name=name), self.assertRaises(Failure):
                argument(request, name, kind)

    def test_a_response_needs_no_whole_request(self):
        for request in (None, [], {}, {"seq": "x", "command": 1}):
            answer = response(request, success=False, message="no")
            self.assertEqual((answer["request_seq"], answer["command"]), (0, ""))


class Connection(unittest.TestCase):
    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        self.events = []
        self.client = Client(self.server.getsockname(), self.events.append)
        self.peer, _ = self.server.accept()
        self.addCleanup(self.peer.close)
        self.thread = threading.Thread(target=self.client.serve)
        self.thread.start()

    def end(self):
        self.peer.close()
        self.thread.join(10)
        self.assertFalse(self.thread.is_alive())

    def test_responses_find_their_requests_in_any_order(self):
        answers = []
        self.client.send("one", {}, answers.append)
        self.client.send("two", {"a": 1}, answers.append)
        stream = self.peer.makefile("rb")
        first, second = read_message(stream), read_message(stream)
        self.assertEqual(second["arguments"], {"a": 1})
        for message in (
            {"type": "event", "event": "stopped"},
            {"type": "response", "request_seq": second["seq"], "n": 2},
            {"type": "response", "request_seq": 99},
            {"type": "response", "request_seq": first["seq"], "n": 1},
        ):
            self.peer.sendall(packed(message))
        stream.close()
        self.end()
        self.assertEqual([answer["n"] for answer in answers], [2, 1])
        self.assertEqual(self.events, [{"type": "event", "event": "stopped"}])

    def test_a_request_that_waits_at_the_end_fails(self):
        answers = []
        self.client.send("one", {}, answers.append)
        self.end()
        self.assertEqual([answer["success"] for answer in answers], [False])
        with self.assertRaises(Failure):
            self.client.send("two", {}, answers.append)

    def test_waiting_requests_are_bounded(self):
        for _ in range(PENDING_MAX):
            self.client.send("x", {}, lambda answer: None)
        with self.assertRaises(Failure):
            self.client.send("x", {}, lambda answer: None)
        self.end()


if __name__ == "__main__":
    unittest.main()
