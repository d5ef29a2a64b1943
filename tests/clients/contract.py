# SPDX-License-Identifier: Apache-2.0
"""What the tests of the contract share: the document, the server it is held against, and the few good
requests that a server may refuse all the same."""

import os
import re
import tempfile
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import hypothesis
import pytest
import schemathesis
from harness import LEAN, TOKEN, Server
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.parameters import ParameterLocation

#: The long form: every boundary value and EXAMPLES random requests for each operation (docs/session-api.md).
LONG = "CELLKEEP_CONTRACT_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("CELLKEEP_CONTRACT_EXAMPLES", "4"))
TIMEOUT = pytest.mark.timeout(3600 if LONG else 300)
SETTINGS = hypothesis.settings(
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)

# Leaves nothing behind: no folder beside the tests.
HYPOTHESIS_HOME = tempfile.TemporaryDirectory(prefix="cellkeep-hypothesis-")  # gone at the exit
hypothesis.configuration.set_hypothesis_home_dir(HYPOTHESIS_HOME.name)
load_all_checks()
POSITIVE = CHECKS.get_one("positive_data_acceptance")
NEGATIVE = CHECKS.get_one("negative_data_rejection")
GOOD = "Positive test case"
AFTER_THE_END = CHECKS.get_one("use_after_free")
HISTORY = "/v1/sessions/{id}/executions"


def show_full_allowlists(part: object) -> None:
    """To find a list of as many different hosts as may be, or of one less, the library takes ten seconds of a
    processor each time. Examples save it that."""
    if isinstance(part, list):
        for one in part:
            show_full_allowlists(one)
    elif isinstance(part, dict):
        if part.get("items") == {"$ref": "#/components/schemas/AllowedHost"}:
            full = [f"host{number}.example.org:443" for number in range(part["maxItems"])]
            part.setdefault("examples", []).extend([full, full[1:]])
        for one in part.values():
            show_full_allowlists(one)


def make_schema(document: dict) -> schemathesis.BaseSchema:
    show_full_allowlists(document)
    if not LONG:
        # No host is as long, but the library looks for one for two seconds of a processor, again and again.
        # What is longer is refused: test_contract.py says so itself.
        del document["components"]["schemas"]["AllowedHost"]["maxLength"]
    # A stream without an end of its own, and what servers inside answer, are other tests' business.
    listing = document["paths"]["/v1/sessions/{id}/files"]["get"]
    listing["parameters"] = [one for one in listing["parameters"] if one.get("name") != "watch"]
    schema = schemathesis.openapi.from_dict(document)
    schema = schema.exclude(path_regex=r"/ports/\{port\}/(\{path\})?$")
    # The server ignores unknown query parameters and headers, as everywhere in HTTP.
    schema.config.generation.update(allow_extra_parameters=False)
    # Good data are accepted: no 403, 429 or 5xx either, which the library lets pass.
    accepted = schema.config.checks.positive_data_acceptance
    accepted.expected_statuses = ["2xx", "3xx", "404", "409"]
    # Bad data may also be too long.
    rejected = schema.config.checks.negative_data_rejection
    rejected.expected_statuses = [*rejected.expected_statuses, "413", "416", "431"]
    return schema


@dataclass(frozen=True)
class Refusal:
    """The refusal of a well-formed request, for a reason that the document cannot express."""

    status: int
    kind: str
    #: Which operations, and for a 422 which fields with which words: regular expressions.
    operation: str = ".*"
    pointer: str = ""
    message: str = ""

    def is_of(self, operation: str, answer: dict) -> bool:
        if answer.get("status") != self.status or answer.get("type") != f"/problems/{self.kind}":
            return False
        if not re.fullmatch(self.operation, operation):
            return False
        return self.status != 422 or bool(answer.get("errors"))

    def explains(self, error: dict) -> bool:
        return bool(
            re.fullmatch(self.pointer, error["pointer"]) and re.search(self.message, error["message"])
        )


MAY_BE_REFUSED = (
    # Limits that would go up, or above what the operator offers.
    Refusal(
        422,
        "invalid-request",
        r"PATCH /v1/sessions/\{id\}",
        r"/limits/\w+",
        r"may only go down|the server's ceiling",
    ),
    # An address in brackets: a pattern for the grammar of IPv6 would not be readable.
    Refusal(
        422,
        "invalid-request",
        r"(POST|PATCH) .*",
        r"/network/allow/\d+",
        r"not an IPv6 address|embeds an IPv4 address",
    ),
    # Hosts that the operator does not allow, and secrets that the server does not have.
    Refusal(403, "forbidden", r"(POST|PATCH) .*"),
    # The operator named no index of packages.
    Refusal(403, "no-package-index", r"POST /v1/sessions/\{id\}/packages"),
    # A file by reference that the operator does not have, or with another digest; one path twice.
    Refusal(
        422,
        "invalid-request",
        r"POST .*",
        r"/files(/\d+.*)?",
        r"there is no such file|is not a plain file|sha256: the file's is",
    ),
    # A session that a request before has ended.
    Refusal(410, "session-ended", r".* /v1/sessions/\{id\}.*"),
    # What goes together is said in words there.
    Refusal(
        422,
        "invalid-request",
        r"POST /v1/executions",
        r"/cache_ttl_s",
        r"is for runs without a network",
    ),
    Refusal(
        422,
        "invalid-request",
        r"POST /v1/(batch|sessions|sessions/\{id\}/branches)",
        r"(/from)?/on_threads|/session|/items/\d+/(code|env)",
        r"belongs to|is for fresh sessions|is required",
    ),
    # In an item or a session of a batch: what is refused elsewhere, too.
    Refusal(422, "invalid-request", r"POST /v1/batch", r".*/(language|environment)", r"is not offered"),
    Refusal(
        422,
        "invalid-request",
        r"POST /v1/batch",
        r"/session/network/allow/\d+",
        r"not an IPv6 address|embeds an IPv4 address",
    ),
    # As many batches as may run.
    Refusal(429, "limit-reached", r"POST /v1/batch"),
    # Cursors of no page.
    Refusal(400, "unknown-cursor", r"GET /v1/sessions|GET /v1/sessions/\{id\}/executions"),
    # Names whose characters are few and whose bytes are many.
    Refusal(400, "bad-path", r".*files.*"),
    Refusal(
        422,
        "invalid-request",
        r"POST /v1/(batch|sessions.*)",
        r".*/(session|checkpoint|from|label|labels/\d+)",
        r"at most \d+ bytes|of 1 to \d+ bytes",
    ),
    # As many labelled checkpoints as a session may have: none of them is evicted for another one.
    Refusal(429, "limit-reached", r"POST /v1/sessions/\{id\}/(checkpoints|rollback)"),
    # Versions of no file, ranges behind its end.
    Refusal(412, "precondition-failed", r"(GET|PUT) /v1/sessions/\{id\}/files/\{path\}"),
    Refusal(416, "range-not-satisfiable", r"GET /v1/sessions/\{id\}/files/\{path\}"),
)


def may_be_refused(case: schemathesis.Case, response: schemathesis.Response) -> bool:
    """Whether the answer is such a refusal. In a 422 every field's error must be one."""
    if not 400 <= response.status_code < 500 or "json" not in response.headers["content-type"][0]:
        return False
    answer = response.json()
    operation = f"{case.method} {case.operation.path}"
    known = [refusal for refusal in MAY_BE_REFUSED if refusal.is_of(operation, answer)]
    errors = answer.get("errors") or []
    return bool(known) and all(any(one.explains(error) for one in known) for error in errors)


def is_history(case: schemathesis.Case, response: schemathesis.Response) -> bool:
    """Executions can be read after the end of their session: StoredExecution in the document."""
    json_body = response.status_code == 200 and "json" in response.headers["content-type"][0]
    if not json_body or case.operation.path not in (HISTORY, HISTORY + "/{exe}"):
        return False
    return "executions" in response.json() or response.json().get("stored") is True


def is_good_after_all(case: schemathesis.Case) -> bool:
    """Whether the library made it as a good request. After a parameter of the path was exchanged the
    library judges it again, by the percent-encoded path: a long name then has over 255 characters."""
    return case.meta is not None and case.meta.phase.data.description == GOOD


def validate(case: schemathesis.Case, response: schemathesis.Response, **more: object) -> None:
    """Runs all of the library's checks, except for a good request that may be refused, and history."""
    excluded = [POSITIVE] if may_be_refused(case, response) else []
    if is_history(case, response):
        excluded.append(AFTER_THE_END)
    if is_good_after_all(case):
        excluded.append(NEGATIVE)
    case.validate_response(response, excluded_checks=excluded, **more)


class Running:
    """The server, with one session, one file and one execution that requests may name."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.other = self.create()
        self.session = self.create()
        self.requests: Counter[str] = Counter()
        self.replace()

    def create(self):  # noqa: ANN201 - harness.Session
        # The requests send code that fails: the circuit breaker would answer instead.
        return self.server.create(limits={"consecutive_failures": 0, "memory_mb": 256})

    def replace(self) -> None:
        """Makes sure that the named objects exist: an earlier DELETE may have succeeded."""
        if self.server.get(self.session.path).status_code != 200:
            self.session = self.create()
        self.execution = self.session.execute("1")["id"]
        self.server.request("PUT", self.session.path + "/files/known.txt", data=b"known")
        page = self.server.get("/v1/sessions?limit=1").json()
        assert page["next"], page
        self.cursors = {
            "/v1/sessions": page["next"],
            HISTORY: self.execution,
        }

    def renew(self) -> None:
        """Makes a new session after limits went down: they may be too low for the next request."""
        self.session.delete()
        self.session = self.create()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "known.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    arguments = ("--max-sessions", "40", "--inputs", str(folder), "--allow-egress", "*.example.org")
    with Server(*LEAN, "--log-format", "text", *arguments) as server:
        yield Running(server)


def make_kind(case: schemathesis.Case, running: Running) -> None:
    """Lets half of the requests name existing objects, and none ask for what the document cannot know."""
    known = {"id": running.session.info["id"], "exe": running.execution, "path": "known.txt"}
    assert case.meta is not None
    marker = zlib.crc32(repr(case.path_parameters).encode(errors="replace")) % 2
    for name, value in known.items():
        bad = case.meta.is_negative_at(ParameterLocation.PATH)  # and has to stay so
        if name in (case.path_parameters or {}) and not bad and (marker or name == "id"):
            case.path_parameters[name] = value
    cursor = running.cursors.get(case.operation.path)
    bad = case.meta.is_negative_at(ParameterLocation.QUERY)
    if cursor is not None and not bad and marker and "after" in (case.query or {}):
        case.query["after"] = cursor
    tame(case)


def tame(case: schemathesis.Case) -> None:
    """Changes fields that would test something else, or take too long."""
    # The token is in the header; a second one in the query is not tested here. Of two positions in
    # one stream the query's counts.
    (case.query or {}).pop("token", None)
    if "after" in (case.query or {}):
        (case.headers or {}).pop("Last-Event-ID", None)
    if isinstance(case.body, dict):
        # Only good fields are changed: a bad one must stay bad.
        if isinstance(case.body.get("idempotency_key"), str):
            key = case.body["idempotency_key"]
            case.body["idempotency_key"] = uuid.uuid4().hex if len(key) <= 255 else key
        language = case.body.get("language")
        if isinstance(language, str) and len(language) <= 128:
            case.body["language"] = "python"  # which others there are, no document can know
        environment = case.body.get("environment")
        if isinstance(environment, str) and re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,23}", environment):
            case.body["environment"] = "default"  # likewise
        timeout = case.body.get("timeout_ms")
        number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        if number and 1000 < timeout <= 86_400_000 and timeout == int(timeout):
            case.body["timeout_ms"] = 1000


def headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}
