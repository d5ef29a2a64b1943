# SPDX-License-Identifier: Apache-2.0
"""A server that is a list of answers."""

import httpx

from cellkeep import Client

SESSION = {"id": "ses_1", "kernel_id": "k", "state": "idle", "language": "python", "limits": {}}


class Answers(httpx.BaseTransport):
    """Returns these answers in turn, or raises them if they are exceptions; keeps the requests."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.seen.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client_of(*answers: httpx.Response | Exception) -> tuple[Client, Answers]:
    transport = Answers(*answers)
    return Client("http://127.0.0.1:1/base", "t", transport=transport, retries=2), transport
