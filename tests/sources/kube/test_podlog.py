"""Reading a container's log over restarts, rotations, refusals and absences; time is a number here."""

import select
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from kvguard.sources.kube.address import Cluster, PodAddress
from kvguard.sources.kube.podlog import LONGEST_BACKOFF_S, SETTLE_S, SILENCE_S, PodLogSource
from kvguard.sources.source import READ_BYTES, Boundary, BoundaryKind, Chunk, SourceEvent, State
from tests.sources.following import boundaries, told
from tests.sources.kube.fake_kube import Container, FakeKube


class Reading:
    """A source that is polled whenever the server has said something, and the time at it."""

    def __init__(self, source: PodLogSource) -> None:
        self.source = source
        self.now = 100.0
        self.events: list[SourceEvent] = []

    def until(self, happened: Callable[[], bool]) -> None:
        """Poll until something is so; time goes on by the source's own delays only where it waits for nothing else."""
        descriptor = self.source.fileno()
        assert descriptor is not None
        readable = select.poll()
        readable.register(descriptor, select.POLLIN)
        for _ in range(2000):
            self.events += self.source.poll(self.now)
            if happened():
                return
            if self.source._request is None:
                self.now += self.source.delay(self.now)
            elif self.source.delay(self.now) > 0:
                assert readable.poll(20_000), f"nothing came: {self.source.status}"
        pytest.fail(f"it never happened: {self.source.status}, {self.events[-5:]}")

    def until_read(self, text: str) -> None:
        """Until all that was told, `|` for boundaries, is this text."""
        self.until(lambda: told(self.events) == text)

    def until_state(self, state: State) -> None:
        """Until the source is in this state."""
        self.until(lambda: self.source.status.state is state)

    def wait(self, seconds: float) -> None:
        """Let time pass, and look."""
        self.now += seconds
        self.events += self.source.poll(self.now)


@pytest.fixture
def container(kube: FakeKube) -> Container:
    return kube.pod("vllm-0", "vllm", "kvguard")[0]


@pytest.fixture
def reading(cluster: Cluster) -> Iterator[Reading]:
    reading = Reading(PodLogSource(PodAddress("team", "vllm-0", "vllm"), cluster))
    yield reading
    reading.source.close()


def log_requests(kube: FakeKube) -> list[dict[str, str]]:
    return [query for path, query, _ in kube.requests if path.endswith("/log")]


class TestFollowing:
    def test_lines_arrive_without_their_stamps(self, container: Container, reading: Reading) -> None:
        container.start()
        container.write("one", "two")
        reading.until_read("one\ntwo\n")
        container.write("three")
        reading.until_read("one\ntwo\nthree\n")
        assert reading.source.status.state is State.READING
        assert reading.source.status.name == "pod:team/vllm-0/vllm"

    def test_a_container_that_is_being_created_is_waited_for(self, container: Container, reading: Reading) -> None:
        reading.until_state(State.WAITING)
        reading.until(lambda: reading.source.status.message == "container vllm is waiting (ContainerCreating)")
        container.start()
        container.write("one")
        reading.until_read("one\n")
        assert reading.source.status.read_errors == 0

    def test_one_whose_kubelet_knows_less_than_its_status_is_waited_for_too(
        self, kube: FakeKube, container: Container, reading: Reading
    ) -> None:
        container.start()
        kube.refusals["log"] = (400, 'container "vllm" in pod "vllm-0" is waiting to start: PodInitializing')
        reading.until(lambda: "no log yet: container" in reading.source.status.message)
        assert reading.source.status.state is State.WAITING
        del kube.refusals["log"]
        container.write("one")
        reading.until_read("one\n")

    def test_a_quiet_container_is_read_all_the_same(self, container: Container, reading: Reading) -> None:
        container.start()
        reading.until_state(State.READING)
        assert told(reading.events) == ""

    def test_the_token_is_read_again_for_each_request(
        self, kube: FakeKube, cluster: Cluster, container: Container, reading: Reading
    ) -> None:
        container.start()
        reading.until_state(State.READING)
        cluster.token_file.write_text("second-token")
        reading.wait(SILENCE_S)
        reading.until(lambda: len(log_requests(kube)) == 2)
        assert [token for _, _, token in kube.requests] == ["Bearer first-token"] * 2 + ["Bearer second-token"] * 2


class TestReconnecting:
    def test_silence_ends_in_a_new_request_that_repeats_nothing(
        self, kube: FakeKube, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one", "two", "three")
        reading.until_read("one\ntwo\nthree\n")
        reading.wait(SILENCE_S)
        container.write("four")
        reading.until_read("one\ntwo\nthree\nfour\n")
        assert log_requests(kube)[-1]["sinceTime"] == "2026-11-29T20:02:11.300000000Z"

    def test_short_silence_does_not(self, kube: FakeKube, container: Container, reading: Reading) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        reading.wait(SILENCE_S - 1)
        assert len(log_requests(kube)) == 1

    def test_lines_with_one_stamp_are_told_apart_by_their_number(self, container: Container, reading: Reading) -> None:
        container.start()
        container.write("a", "b", step=0)
        reading.until_read("a\nb\n")
        reading.wait(SILENCE_S)
        container.write("c", "d", step=0)
        reading.until_read("a\nb\nc\nd\n")

    def test_what_the_kubelet_rotated_unseen_is_found_after_silence(
        self, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        container.rotate()
        container.write("two")
        reading.wait(SILENCE_S)
        reading.until_read("one\n|two\n")
        assert boundaries(reading.events) == ["lines-lost"]

    def test_a_connection_that_breaks_in_the_middle_of_a_line(
        self, kube: FakeKube, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one")
        container.write("half", end=b"")
        reading.until_read("one\n")
        kube.away = True
        with kube.changed:
            kube.changed.notify_all()
        reading.until_state(State.FAILING)
        assert "no answer from the API server" in reading.source.status.message
        kube.away = False
        container.write(" a line")
        reading.until_read("one\nhalf a line\n")

    def test_an_answer_that_ends_while_the_container_runs_is_asked_for_again_later(
        self, kube: FakeKube, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        began = reading.now
        container.hang_up()
        reading.until(lambda: reading.now > began)
        container.write("two")
        reading.until_read("one\ntwo\n")
        assert reading.now - began >= SETTLE_S

    def test_an_api_server_that_is_away_for_an_hour(
        self, kube: FakeKube, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        kube.away = True
        with kube.changed:
            kube.changed.notify_all()
        began, tries = reading.now, len(kube.requests)
        reading.until(lambda: reading.now - began > 3600)
        assert 3600 / LONGEST_BACKOFF_S <= len(kube.requests) - tries <= 3600 / LONGEST_BACKOFF_S + 10
        container.write("two")
        kube.away = False
        reading.until_read("one\ntwo\n")
        assert boundaries(reading.events) == []

    def test_a_server_that_answers_500_for_an_hour(
        self, kube: FakeKube, container: Container, reading: Reading
    ) -> None:
        kube.refusals["pod"] = (500, "etcdserver: request timed out")
        container.start()
        began = reading.now
        reading.until(lambda: reading.now - began > 3600)
        assert 3600 / LONGEST_BACKOFF_S <= reading.source.status.read_errors <= 3600 / LONGEST_BACKOFF_S + 10
        assert reading.source.status.message == (
            "the API server answers 500 for pod vllm-0 in namespace team: etcdserver: request timed out"
        )
        assert reading.source.delay(reading.now) == LONGEST_BACKOFF_S
        kube.refusals.clear()
        container.write("one")
        reading.until_read("one\n")


class TestRestarts:
    def test_a_restart_is_a_boundary_and_certainly_another_process(
        self, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one", "last words")
        reading.until_read("one\nlast words\n")
        container.end(1)
        container.start()
        container.write("two")
        reading.until_read("one\nlast words\n|two\n")
        [boundary] = [event for event in reading.events if isinstance(event, Boundary)]
        assert (boundary.kind, boundary.new_process) == (BoundaryKind.NEW_CONTAINER, True)
        assert reading.source.status.rotations == 1

    def test_the_last_words_of_the_run_before_are_read_as_previous(
        self, kube: FakeKube, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        kube.away = True
        with kube.changed:
            kube.changed.notify_all()
        reading.until_state(State.FAILING)
        container.write("last words")
        container.end(1)
        container.start()
        container.write("two")
        kube.away = False
        reading.until_read("one\nlast words\n|two\n")

    def test_who_comes_late_reads_the_start_that_died_first(self, container: Container, reading: Reading) -> None:
        container.start()
        container.write("it died")
        container.end(1)
        container.start()
        container.write("it lives")
        reading.until_read("it died\n|it lives\n")

    def test_until_the_newest_run_is_read_it_is_behind(self, container: Container, reading: Reading) -> None:
        assert reading.source.status.behind
        container.start()
        container.write("it died")
        container.end(1)
        container.start()
        reading.until(lambda: "it died" in told(reading.events))
        assert reading.source.status.behind != (boundaries(reading.events) == ["new-container"])
        container.write("it lives")
        reading.until_read("it died\n|it lives\n")
        assert not reading.source.status.behind

    def test_a_container_that_has_ended_is_told_before_its_restart(
        self, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one")
        container.end(137)
        reading.until(lambda: boundaries(reading.events) == ["new-container"])

    def test_so_is_a_pod_that_is_gone(self, kube: FakeKube, container: Container, reading: Reading) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        del kube.pods["vllm-0"]
        container.hang_up()
        reading.until(lambda: boundaries(reading.events) == ["new-container"])

    def test_two_restarts_at_once(self, kube: FakeKube, container: Container, reading: Reading) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        kube.away = True
        with kube.changed:
            kube.changed.notify_all()
        reading.until_state(State.FAILING)
        for text in ("two", "three"):
            container.end(1)
            container.start()
            container.write(text)
        kube.away = False
        reading.until_read("one\n|two\n|three\n")

    def test_a_crash_loop(self, container: Container, reading: Reading) -> None:
        for number in range(3):
            container.start()
            container.write(f"try {number}")
            container.end(1)
            expected = "".join(f"try {each}\n|" for each in range(number + 1))
            reading.until_read(expected)
            reading.until(lambda: "CrashLoopBackOff" in reading.source.status.message)
        assert reading.source.status.state is State.WAITING
        assert boundaries(reading.events) == ["new-container"] * 3

    def test_a_line_without_end_is_told_when_its_run_has_ended(self, container: Container, reading: Reading) -> None:
        container.start()
        container.write("one")
        container.write("Killed", end=b"")
        reading.until_read("one\n")
        container.end(137)
        reading.until_read("one\nKilled|")

    def test_a_previous_log_that_is_gone_is_passed_over(
        self, kube: FakeKube, container: Container, reading: Reading, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        container.start()
        container.end(1)
        container.start()
        container.write("one")
        real = kube.log

        def log(pod: str, query: dict[str, str]) -> Iterator[bytes]:
            if query.get("previous"):
                raise ValueError('previous terminated container "vllm" in pod "vllm-0" not found')
            return real(pod, query)

        monkeypatch.setattr(kube, "log", log)
        reading.until_read("one\n")

    def test_a_pod_that_was_replaced_under_its_name(
        self, kube: FakeKube, container: Container, reading: Reading
    ) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        container.end(0)
        del kube.pods["vllm-0"]
        reading.until(
            lambda: reading.source.status.message == "there is no pod vllm-0 in namespace team: waiting for it"
        )
        [fresh] = kube.pod("vllm-0", "vllm")
        fresh.start()
        fresh.runs[0].id = "containerd://another"
        fresh.write("two")
        reading.until_read("one\n|two\n")

    def test_a_pod_that_is_over_ends_the_source(self, kube: FakeKube, container: Container, reading: Reading) -> None:
        container.start()
        container.write("one")
        reading.until_read("one\n")
        kube.phase = "Failed"
        container.end(1, reason="")
        reading.until_state(State.ENDED)
        assert reading.source.status.message == "container vllm: ended with status 1 (Error); the pod is over"
        assert reading.source.poll(reading.now + 1e6) == []


class TestRefusals:
    @pytest.mark.parametrize(
        "kind, right",
        [("pod", "pods"), ("log", "pods/log")],
    )
    def test_a_missing_right_is_named(
        self, kube: FakeKube, container: Container, reading: Reading, kind: str, right: str
    ) -> None:
        container.start()
        kube.refusals[kind] = (403, "pods is forbidden")
        reading.until_state(State.FAILING)
        assert reading.source.status.message == (
            f"not allowed to read {right} of pod vllm-0 in namespace team: "
            f"give the service account a Role in namespace team with verb get on {right}"
        )
        kube.refusals.clear()
        container.write("one")
        reading.until_read("one\n")

    def test_a_token_that_is_not_accepted(self, kube: FakeKube, container: Container, reading: Reading) -> None:
        kube.refusals["pod"] = (401, "Unauthorized")
        reading.until_state(State.FAILING)
        assert "does not accept the service account's token" in reading.source.status.message

    def test_a_token_that_is_not_there(self, cluster: Cluster, container: Container, reading: Reading) -> None:
        cluster.token_file.unlink()
        reading.until_state(State.FAILING)
        assert f"{cluster.token_file}: No such file or directory" in reading.source.status.message

    def test_a_container_that_the_pod_does_not_have(self, kube: FakeKube, cluster: Cluster) -> None:
        kube.pod("vllm-0", "server", "kvguard")
        reading = Reading(PodLogSource(PodAddress("team", "vllm-0", "vllm"), cluster))
        reading.until_state(State.FAILING)
        assert reading.source.status.message == "pod vllm-0 has no container vllm: it has server, kvguard"
        reading.source.close()

    @pytest.mark.parametrize(
        "answer",
        [
            ["not a pod"],
            {"status": {"containerStatuses": [{"name": "vllm", "restartCount": float("inf")}]}},
            {"status": {"containerStatuses": [7]}},
            {"spec": 7},
        ],
        ids=["a list", "restarts without an end", "a number for a status", "a number for a spec"],
    )
    def test_an_answer_that_is_no_pod(
        self,
        kube: FakeKube,
        container: Container,
        reading: Reading,
        monkeypatch: pytest.MonkeyPatch,
        answer: object,
    ) -> None:
        monkeypatch.setattr(kube, "pod_object", lambda name: answer)
        reading.until_state(State.FAILING)
        assert "is no pod" in reading.source.status.message


def test_a_poll_takes_a_bounded_part_of_what_came(container: Container, reading: Reading) -> None:
    container.start()
    container.write(*["x" * 1000] * 2000)
    sizes = [0]

    def all_read() -> bool:
        told_now = sum(len(event.data) for event in reading.events if isinstance(event, Chunk))
        sizes.append(told_now)
        return told_now == 2000 * 1001

    reading.until(all_read)
    assert max(after - before for before, after in pairwise(sizes)) <= READ_BYTES + 64 * 1024
