# SPDX-License-Identifier: Apache-2.0
"""Walks along the links of /openapi.json: schemathesis makes a session, and what one answer gave is what
the next request names, until the session is ended. Each answer is held against the document.

CELLKEEP_CONTRACT_EXAMPLES=N is the long form: N walks and N / 2 (docs/session-api.md).
"""

from collections import Counter

import hypothesis
import pytest
import requests
import schemathesis
from contract import (
    EXAMPLES,
    SETTINGS,
    TIMEOUT,
    Running,
    headers,
    make_schema,
    running,
    tame,
)
from contract import validate as check
from document import read_document

__all__ = ["running"]  # a fixture
pytestmark = TIMEOUT
WALKS = {"sessions": max(40, EXAMPLES), "one-shots": max(15, EXAMPLES // 2)}
STEPS_MAX = 12
#: The links that a walk may take, by what makes what they start from, and the ones that it must have
#: taken, each with an id that an answer gave. Sessions end behind a run only, or most walks would be
#: short; and where one status alone has a link (202, interrupt), the library waits for it for ever.
SESSIONS = {
    "createSession": ["Execute", "PutFile", "ListFiles"],
    "execute": [
        "GetExecution",
        "FollowExecution",
        "GetArtifact",
        "ListMadeFiles",
        "ExecuteNext",
        "DeleteSessionAfterwards",
    ],
    "putFile": ["GetFile", "DeleteFile", "ListFilesAfterwards"],
    "listFiles": ["GetListedFile"],
}
ONE_SHOTS = {"executeOnce": ["GetOneShot", "FollowOneShot"]}
CASES = {
    "sessions": (
        SESSIONS,
        {
            "createSession -> execute",
            "createSession -> putFile",
            "execute -> execute",
            "execute -> getExecution",
            "execute -> followExecution",
            "execute -> getFile",
            "execute -> deleteSession",
            "putFile -> getFile",
        },
    ),
    "one-shots": (
        ONE_SHOTS,
        {"executeOnce -> getOneShot", "executeOnce -> followOneShot"},
    ),
}


def document_with(links: dict[str, list[str]]) -> tuple[dict, dict[str, str]]:
    """The document with these links only, and the operations' names."""
    document = read_document()
    names: dict[str, str] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            name = names[f"{method.upper()} {path}"] = operation["operationId"]
            for answer in operation["responses"].values():
                kept = links.get(name, [])
                if "links" in answer:
                    answer["links"] = {one: to for one, to in answer["links"].items() if one in kept}
    return document, names


def make_useful(case: schemathesis.Case) -> None:
    """Programs that make a file to follow, and sessions that last: what is refused, and what limits and
    hosts do, is tried one by one in test_contract.py."""
    tame(case)
    if isinstance(case.body, dict) and "code" in case.body:
        case.body["code"] = f"open('made.txt', 'w').write({case.body['code'][:40]!r})"
    if isinstance(case.body, dict) and case.operation.path != "/v1/sessions/{id}/executions":
        for name in ("limits", "network", "files"):
            case.body.pop(name, None)
        if "from" in case.body:  # there is nothing yet to go on from
            case.body.clear()


@pytest.mark.parametrize("name", CASES)
def test_what_an_answer_gives_is_good_for_the_next_request(running: Running, name: str) -> None:
    links, wanted = CASES[name]
    document, names = document_with(links)
    schema = make_schema(document)
    schema.config.generation.update(modes=[schemathesis.GenerationMode.POSITIVE])
    schema.config.phases.stateful.inference.algorithms = []  # the links of the document, no guessed ones
    walked: Counter[str] = Counter()

    class Walk(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            self.made: list[str] = []
            self.http = requests.Session()

        def get_call_kwargs(self, case: schemathesis.Case) -> dict:
            return {
                "base_url": running.server.url,
                "headers": headers(),
                "session": self.http,
                "timeout": 60,
            }

        def before_call(self, case: schemathesis.Case) -> None:
            make_useful(case)

        def after_call(self, response: schemathesis.Response, case: schemathesis.Case) -> None:
            super().after_call(response, case)
            if response.status_code == 201 and case.operation.path == "/v1/sessions":
                self.made.append("/v1/sessions/" + response.json()["id"])
            node = self.recorder.cases[case.id]
            if node.parent_id is not None and node.is_transition_applied and response.status_code < 300:
                source = self.recorder.cases[node.parent_id].value.operation.label
                walked[f"{names[source]} -> {names[case.operation.label]}"] += 1

        def validate_response(
            self, response: schemathesis.Response, case: schemathesis.Case, **more: object
        ) -> None:
            check(case, response, headers=headers(), recorder=self.recorder)

        def teardown(self) -> None:
            self.http.close()
            for path in self.made:
                assert running.server.request("DELETE", path).status_code in (204, 404, 410)

    Walk.run(
        settings=hypothesis.settings(
            SETTINGS,
            max_examples=WALKS[name],
            stateful_step_count=STEPS_MAX,
            phases=[hypothesis.Phase.generate],
        )
    )
    print(f"{sum(walked.values())} links followed: {dict(walked)}")
    assert walked.keys() >= wanted, wanted - walked.keys()
