"""Yes and no from the page: only where it was asked for, only for what waits, and only between passes."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any

import pytest

from console_scene import page_scene
from loop_scene import SPECS, Scene, with_mode
from storm_operator.console.api import Api
from storm_operator.console.approval import HAS_ENDED, Answer, Approver, LoopApprover, Verdict
from storm_operator.console.messages import Request
from storm_operator.console.server import serve_page
from storm_operator.console.site import PageAddress, PageUnavailable, SinglePage, open_page
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.plan_record import PlanState
from storm_operator.core.settings import Mode
from storm_operator.core.wording import state_in_words

RECOMMEND = with_mode(Mode.RECOMMEND)


def proposed() -> tuple[Scene, Api, LoopApprover, str]:
    page = page_scene(passes=0)
    page.played.run(RECOMMEND)
    (waiting,) = page.played.loop.memory.proposals.waiting
    approver = LoopApprover(lambda: page.played.loop.memory.proposals)
    return page.played, replace_approver(page.api, approver), approver, waiting.plan.id


def replace_approver(api: Api, approver: Approver) -> Api:
    return Api(api.clusters, approver)


def said(api: Api, plan_id: str, body: bytes) -> tuple[int, str]:
    answer = api.answer(Request("POST", f"/api/v1/plans/{plan_id}/verdict", body=body))
    return int(answer.status), json.loads(answer.body)["message"]


def test_an_approved_plan_is_carried_out_by_the_next_pass() -> None:
    played, api, approver, plan_id = proposed()
    assert json.loads(api.answer(Request("GET", "/api/v1/plans")).body)["plans"][0]["waits_for_approval"] is True
    assert said(api, plan_id, b'{"verdict": "approve"}') == (202, "approved; it begins with the next pass")
    assert played.loop.memory.proposals.waiting[0].approved_by == ""  # nobody but the loop's thread touches its memory
    approver.carry_out(played.loop.desk)
    played.run(RECOMMEND)
    assert played.loop.memory.records[-1].plan.id == plan_id
    assert played.loop.memory.records[-1].approved_by == "the operator's page"


def test_a_rejected_plan_is_not_proposed_again() -> None:
    played, api, approver, plan_id = proposed()
    assert said(api, plan_id, b'{"verdict": "reject"}')[0] == 202
    approver.carry_out(played.loop.desk)
    played.run(RECOMMEND)
    assert played.loop.memory.proposals.waiting == ()
    plans = json.loads(api.answer(Request("GET", "/api/v1/plans")).body)["plans"]
    assert [plan["state"] for plan in plans] == [PlanState.REJECTED]


def test_what_does_not_wait_cannot_be_approved() -> None:
    played, api, approver, plan_id = proposed()
    assert said(api, "p-other", b'{"verdict": "approve"}') == (404, "there is no plan 'p-other' among the last ones")
    said(api, plan_id, b'{"verdict": "approve"}')
    approver.carry_out(played.loop.desk)
    words = f"plan {plan_id} does not wait for a person: it may be begun, or outdated"
    assert said(api, plan_id, b'{"verdict": "reject"}') == (409, words)


def test_a_plan_of_any_cluster_is_known_whichever_is_asked_for() -> None:
    played, api, approver, plan_id = proposed()
    played.loop.desk.withdraw(plan_id, "for a test")
    with_another = Api(lambda: {"a-first": page_scene(passes=1).watcher, **api.clusters()}, approver)
    assert said(with_another, plan_id, b'{"verdict": "approve"}')[0] == 409


@pytest.mark.parametrize(("first", "second"), [("reject", "approve"), ("approve", "reject"), ("approve", "approve")])
def test_of_two_people_who_answer_before_the_next_pass_the_second_is_told_of_the_first(first: str, second: str) -> None:
    played, api, approver, plan_id = proposed()
    assert said(api, plan_id, f'{{"verdict": "{first}"}}'.encode())[0] == 202
    status, message = said(api, plan_id, f'{{"verdict": "{second}"}}'.encode())
    assert (status, f"somebody has said {first} to plan {plan_id} already" in message) == (409, True)
    approver.carry_out(played.loop.desk)
    told = json.loads(api.answer(Request("GET", "/api/v1/plans")).body)["plans"][0]
    assert (told["state"], bool(told["approved_by"])) == (
        ("Rejected", False) if first == "reject" else ("Proposed", True)
    )


def test_a_plan_that_is_superseded_while_it_is_rejected_is_not_proposed_again_either() -> None:
    played, api, approver, plan_id = proposed()
    (waiting,) = played.loop.memory.proposals.waiting
    assert said(api, plan_id, b'{"verdict": "reject"}') == (202, "rejected; its target is not proposed again")
    played.loop.desk.withdraw(plan_id, "superseded by plan p-other")
    approver.carry_out(played.loop.desk)
    held = played.run(RECOMMEND)
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.KNOWN_BAD
    assert played.loop.memory.decisions.known_bad_like(waiting.plan.target, 0.0, exactly=True) is not None


def test_once_the_loop_has_ended_or_ends_nobody_is_told_that_a_plan_will_begin() -> None:
    _, api, approver, plan_id = proposed()
    approver.is_ending = lambda: True
    assert said(api, plan_id, b'{"verdict": "approve"}') == (409, HAS_ENDED)
    approver.is_ending = lambda: False
    assert approver.end() == ()
    assert said(api, plan_id, b'{"verdict": "approve"}') == (409, HAS_ENDED)


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_what_was_said_too_late_to_be_carried_out_is_told_at_the_end(verdict: str) -> None:
    _, api, approver, plan_id = proposed()
    assert said(api, plan_id, json.dumps({"verdict": verdict}).encode())[0] == 202
    (left,) = approver.end()
    assert left.startswith(f"plan {plan_id} was {verdict}")
    assert f"{verdict} it again" in left


@pytest.mark.parametrize("body", [b"", b"{}", b'{"verdict": "maybe"}', b"[]", b"\xff"])
def test_a_verdict_is_one_of_two_words(body: bytes) -> None:
    _, api, _, plan_id = proposed()
    assert said(api, plan_id, body) == (400, 'the body must be {"verdict": "approve"} or {"verdict": "reject"}')


def test_without_the_flag_nobody_approves() -> None:
    page = page_scene(passes=1)
    status, message = said(page.api, "p-10", b'{"verdict": "approve"}')
    assert status == 403
    assert "--page-approval" in message
    assert page.get("clusters")["approval"] == "off"


class TestOverHttp:
    """What browsers of other sites could send."""

    @pytest.fixture
    def asked(self) -> Any:
        _, api, approver, plan_id = proposed()
        server = serve_page(api, "127.0.0.1", 0)
        port = server.server_address[1]

        def ask(method: str = "POST", body: bytes = b'{"verdict": "approve"}', **headers: str) -> tuple[int, int]:
            """(status, verdicts taken)"""
            connection = HTTPConnection("127.0.0.1", int(port), timeout=10)
            given = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json"}
            given |= {name.replace("_", "-"): value for name, value in headers.items()}
            sent = body if method == "POST" else None
            connection.request(method, f"/api/v1/plans/{plan_id}/verdict", sent, given)
            status = connection.getresponse().status
            connection.close()
            return status, len(approver._verdicts)

        ask.port = port  # type: ignore[attr-defined]
        yield ask
        server.shutdown()
        server.server_close()

    def test_the_page_itself_may(self, asked: Any) -> None:
        assert asked(Origin=f"http://127.0.0.1:{asked.port}") == (202, 1)

    def test_a_program_may(self, asked: Any) -> None:
        assert asked() == (202, 1)

    def test_headers_that_mean_nothing_are_refused_and_are_no_bug(self, asked: Any, capsys: Any) -> None:
        assert asked(Host="[::1") == (421, 0)
        assert asked(Origin="http://[::1") == (403, 0)
        assert asked(Content_Length="\u00b2") == (413, 0)
        assert capsys.readouterr().err == ""

    def test_an_address_that_is_none_is_refused_and_is_no_bug(self, asked: Any, capsys: Any) -> None:
        """As who looks for open proxies asks."""
        with socket.create_connection(("127.0.0.1", asked.port), timeout=10) as connection:
            connection.sendall(b"GET http://[::1/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = connection.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH"])
    @pytest.mark.parametrize("path", ["/", "/api/v1/plans", "/nowhere"])
    def test_what_nobody_may_is_refused_as_a_program_reads_it(self, asked: Any, method: str, path: str) -> None:
        connection = HTTPConnection("127.0.0.1", asked.port, timeout=10)
        connection.request(method, path)
        answer = connection.getresponse()
        assert answer.status in (404, 405)
        assert json.loads(answer.read()).keys() == {"message"}
        connection.close()

    def test_another_site_may_not(self, asked: Any) -> None:
        assert asked(Origin="http://evil.example") == (403, 0)
        assert asked(Origin="null") == (403, 0)

    def test_a_form_may_not(self, asked: Any) -> None:
        assert asked(Content_Type="text/plain") == (415, 0)

    def test_a_strangers_name_that_points_here_may_not(self, asked: Any) -> None:
        assert asked(Host=f"evil.example:{asked.port}", Origin=f"http://evil.example:{asked.port}") == (421, 0)

    def test_nothing_large_is_read(self, asked: Any) -> None:
        assert asked(Content_Length="100000")[0] == 413

    def test_a_length_of_more_digits_than_python_reads_is_refused_and_is_no_bug(self, asked: Any, capsys: Any) -> None:
        assert asked(Content_Length="9" * 5000) == (413, 0)
        assert capsys.readouterr().err == ""

    def test_a_body_that_is_nested_too_deep_is_refused(self, asked: Any) -> None:
        assert asked(body=b"[" * 1000) == (400, 0)

    @pytest.mark.parametrize(
        "head",
        [
            "GET /api/v1/clusters HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n",
            "HEAD / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST /api/v1/plans/p/verdict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 0\r\nContent-Length: {length}\r\n\r\n",
            "POST /api/v1/plans/p/verdict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        ],
        ids=["get", "head", "chunked", "two lengths", "chunked post"],
    )
    def test_what_is_hidden_in_a_body_is_not_answered_as_a_request(self, asked: Any, head: str) -> None:
        """A proxy would hand the second answer to somebody else, whose connection this is, too."""
        hidden = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.create_connection(("127.0.0.1", asked.port), timeout=10) as connection:
            connection.sendall(head.format(length=len(hidden)).encode() + hidden)
            connection.shutdown(socket.SHUT_WR)
            answers = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answers.startswith(b"HTTP/1.1 400 ")
        assert answers.count(b"HTTP/1.1 ") == 1
        assert b"Connection: close" in answers

    def test_a_request_that_says_that_it_has_no_body_is_answered(self, asked: Any) -> None:
        assert asked("GET", Content_Length="0") == (405, 0)

    def test_nothing_is_approved_by_looking(self, asked: Any) -> None:
        assert asked("GET") == (405, 0)


def test_the_token_is_what_authorization_bears() -> None:
    heard: list[tuple[str, str, str]] = []

    class Listens:
        needs_token = True

        def take(self, plan_id: str, verdict: Verdict, token: str) -> Answer:
            heard.append((plan_id, verdict.value, token))
            return Answer(HTTPStatus.ACCEPTED, "heard")

    token_of = {"Bearer abc.def": "abc.def", "bearer  abc ": "abc", "Basic abc": "", "abc": "", "Bearer": "", None: ""}
    server = serve_page(replace_approver(page_scene(passes=1).api, Listens()), "127.0.0.1", 0)
    try:
        for header, token in token_of.items():
            connection = HTTPConnection("127.0.0.1", int(server.server_address[1]), timeout=10)
            headers = {"Content-Type": "application/json"} | ({"Authorization": header} if header else {})
            connection.request("POST", "/api/v1/plans/p-1/verdict", b'{"verdict": "reject"}', headers)
            assert connection.getresponse().status == 202
            connection.close()
            assert heard.pop() == ("p-1", "reject", token), header
    finally:
        server.shutdown()
        server.server_close()


def test_a_port_that_is_taken_is_said() -> None:
    page = SinglePage("one", may_approve=False)
    server, where = page.open(PageAddress(0))
    try:
        with pytest.raises(PageUnavailable, match="choose another --page-port"):
            open_page(Api(dict), PageAddress(where.port))
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
def test_an_address_that_this_machine_has_not_is_said_to_be_the_hosts(host: str) -> None:
    with pytest.raises(PageUnavailable, match="choose another --page-host"):
        open_page(Api(dict), PageAddress(0, host))


def test_what_was_said_on_the_page_reaches_the_loop() -> None:
    played = page_scene(passes=0).played
    page = SinglePage("one", may_approve=True, proposals=lambda: played.loop.memory.proposals)
    played.loop.listener = page.watcher
    played.run(RECOMMEND)
    plan_id = page.watcher.seen.plan_views()[0].id
    assert page.approver.take(plan_id, page_verdict("approve"), "").status == 202
    page.carry_out(played.loop.desk)
    played.run({name: replace(spec) for name, spec in RECOMMEND.items()})
    assert played.loop.memory.records[-1].plan.id == plan_id
    assert SPECS.keys() == RECOMMEND.keys()


def page_verdict(word: str) -> Any:
    return Verdict(word)


@pytest.mark.parametrize(
    ("verdict", "state", "told"),
    [
        ("approve", "Approved", "approved by the operator's page; it begins with the next pass"),
        ("reject", "Rejected", "rejected on the operator's page"),
    ],
)
def test_a_plan_that_somebody_answered_is_not_told_to_wait_until_the_loop_has_heard(
    verdict: str, state: str, told: str
) -> None:
    scene = page_scene(passes=0)
    scene.played.run(RECOMMEND)
    page = SinglePage("blue", may_approve=True, watcher=scene.watcher)
    page.proposals = lambda: scene.played.loop.memory.proposals
    api = Api(lambda: {"blue": page.watcher}, page.approver)
    (waiting,) = page.proposals().waiting
    before = api.answer(Request("GET", "/api/v1/plans"))
    assert said(api, waiting.plan.id, f'{{"verdict": "{verdict}"}}'.encode())[0] == 202
    answer = api.answer(Request("GET", "/api/v1/plans", known_tag=f'"{before.tag}"'))
    (plan,) = json.loads(answer.body)["plans"]
    assert (plan["waits_for_approval"], plan["message"]) == (False, told)
    assert state_in_words(plan["state"], plan["approved_by"]) == state
    explained = page.watcher.seen.explain(waiting.plan.topology_ids[0])
    assert explained is not None
    (last,) = (part for part in explained.parts if part.title == "Last plan")
    assert last.sentences[0].startswith(f"{waiting.plan.id} ({state}): ")
    page.carry_out(scene.played.loop.desk)
    (after,) = json.loads(api.answer(Request("GET", "/api/v1/plans")).body)["plans"]
    assert (after["waits_for_approval"], after["message"]) == (False, told)
