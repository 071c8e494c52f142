"""What pipelines run, run here: the action's step, the GitLab job, the hook, the Job's two commands, Argo's query."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from junitparser import JUnitXml

from tests.conftest import FIXTURES

ROOT = FIXTURES.parent
CI = ROOT / "deploy" / "ci"
RAG = str(FIXTURES / "logs/story/rag-24gb.log")
RUN = FIXTURES / "logs/runs/vllm-0.32.0-cpu-base/server.log"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def tool(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a tool of the test group; without it the test fails with pip's line."""
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    try:
        return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environ)
    except FileNotFoundError:
        pytest.fail(f"{words[0]} is missing: pip install --group test (promtool: apt-get install prometheus)")


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The environment of a pipeline in which `kvguard` is this one."""
    program = tmp_path / "bin" / "kvguard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec env PYTHONPATH="{ROOT / "src"}" "{sys.executable}" -m kvguard "$@"\n')
    program.chmod(0o755)
    tools = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": tools, "HOME": str(tmp_path), "RUNNER_TEMP": str(tmp_path)}


class TestTheGitHubAction:
    """`action.yml` and the step that it runs."""

    def step(self, shell: dict[str, str], folder: Path, **inputs: str) -> "subprocess.CompletedProcess[str]":
        action = load(ROOT / "action.yml")
        defaults = {name: spec.get("default", "") for name, spec in action["inputs"].items()}
        step = action["runs"]["steps"][0]
        environ = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: (defaults | inputs)[found[1]], text)
            for name, text in step["env"].items()
        }
        places = {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        }
        command = ["bash", "-e", "-c", step["run"]]
        return subprocess.run(command, env=shell | places | environ, cwd=folder, capture_output=True, text=True)

    def test_a_miss_fails_the_step_and_annotates_the_log(self, shell: dict[str, str], tmp_path: Path) -> None:
        done = self.step(shell, tmp_path, log=RAG, flags="--min-concurrency 2.5", junit="report.xml")

        assert done.returncode == 1
        assert done.stdout.startswith("FAIL  ")
        assert f"\n::error file={RAG},line=2,title=kvguard%3A min_concurrency fail::" in done.stdout
        assert (tmp_path / "output").read_text() == "outcome=fail\n"
        assert (tmp_path / "summary.md").read_text().startswith("### ❌ kvguard: fail")
        assert JUnitXml.fromfile(str(tmp_path / "report.xml")).failures == 1
        assert (tmp_path / "kvguard-report.json").is_file()

    @pytest.mark.parametrize(
        "flags, status, outcome",
        [("--min-concurrency 1", 0, "pass"), ("--min-kv-cache\n3GiB", 3, "unknown")],
    )
    def test_the_outcome_is_an_output(
        self, flags: str, status: int, outcome: str, shell: dict[str, str], tmp_path: Path
    ) -> None:
        done = self.step(shell, tmp_path, log=f"{RAG}\n", flags=flags, summary="false")

        assert done.returncode == status
        assert (tmp_path / "output").read_text() == f"outcome={outcome}\n"
        assert not (tmp_path / "summary.md").exists()

    def test_an_unreadable_log_is_said_and_no_outcome(self, shell: dict[str, str], tmp_path: Path) -> None:
        done = self.step(shell, tmp_path, log="gone.log", flags="--min-concurrency 1")

        assert done.returncode == 2
        assert "kvguard: gone.log: no such file" in done.stderr
        assert not (tmp_path / "output").exists()

    def test_an_input_is_no_code(self, shell: dict[str, str], tmp_path: Path) -> None:
        done = self.step(shell, tmp_path, log='x"; touch owned; echo ".log', flags="$(touch owned) `touch owned`")

        assert done.returncode == 2
        assert not (tmp_path / "owned").exists()

    def test_it_is_a_valid_and_safe_action(self) -> None:
        schema = tool("check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml")
        audit = tool("zizmor", "--offline", "--no-progress", "action.yml")
        lint = tool("shellcheck", "deploy/ci/github-action.sh")

        assert (schema.returncode, audit.returncode, lint.stdout) == (0, 0, ""), schema.stdout + audit.stdout


class TestTheGitLabTemplate:
    """`kvguard.gitlab-ci.yml`: its script, in a shell."""

    def job(self, shell: dict[str, str], folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        job = load(CI / "kvguard.gitlab-ci.yml")[".kvguard"]
        script = "\n".join(["set -e", *job["before_script"], *job["script"]])
        environ = shell | job["variables"] | variables
        return subprocess.run(["sh", "-c", script], env=environ, cwd=folder, capture_output=True, text=True)

    def test_it_judges_and_leaves_its_reports(self, shell: dict[str, str], tmp_path: Path) -> None:
        done = self.job(shell, tmp_path, KVGUARD_LOG=RAG, KVGUARD_FLAGS="--min-concurrency 2.5")

        assert done.returncode == 1, done.stderr
        assert JUnitXml.fromfile(str(tmp_path / "kvguard.xml")).failures == 1
        assert (tmp_path / "kvguard.json").is_file()

    def test_it_is_valid(self) -> None:
        done = tool("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", "deploy/ci/kvguard.gitlab-ci.yml")

        assert done.returncode == 0, done.stdout


class TestTheHook:
    """`.pre-commit-hooks.yaml`."""

    def test_it_takes_slo_files_and_no_others(self) -> None:
        pattern = re.compile(load(ROOT / ".pre-commit-hooks.yaml")[0]["files"])
        taken = ["slo.yaml", "deploy/slo.yml", "prod.slo.json", "slo-prod.yaml", "a/vllm_slo.yaml", "vllm-slo.yaml"]
        left = ["values.yaml", "slow.yaml", "slo.py", "oslo.yaml", "slo/readme.md", "isslo.yaml"]

        assert [name for name in taken + left if pattern.search(name)] == taken

    @pytest.mark.parametrize("file, status", [("valid/one-objective.yaml", 0), ("invalid/two-mistakes.yaml", 1)])
    def test_its_entry_says_what_is_wrong(self, file: str, status: int, shell: dict[str, str]) -> None:
        entry = load(ROOT / ".pre-commit-hooks.yaml")[0]["entry"]
        command = [*shlex.split(entry), str(FIXTURES / "slo" / file)]

        assert subprocess.run(command, env=shell, capture_output=True).returncode == status

    def test_it_is_valid(self) -> None:
        done = tool("pre-commit", "validate-manifest", ".pre-commit-hooks.yaml")

        assert done.returncode == 0, done.stdout


class TestTheJob:
    """`job.yaml`: both commands side by side, and the schemas of Kubernetes."""

    def parts(self) -> tuple[str, dict[str, Any]]:
        slo, job = yaml.safe_load_all((CI / "job.yaml").read_text())
        return slo["data"]["slo.yaml"], job["spec"]["template"]["spec"]

    def test_the_guard_judges_what_vllm_prints(self, shell: dict[str, str], tmp_path: Path) -> None:
        slo, pod = self.parts()
        (tmp_path / "slo.yaml").write_text(slo)
        log = tmp_path / "vllm.log"
        vllm = tmp_path / "bin" / "vllm"
        vllm.write_text(f'#!/bin/sh\ncat "{RUN}"\nexec sleep 60\n')
        vllm.chmod(0o755)
        places = {"/var/log/vllm/vllm.log": str(log), "/etc/kvguard/slo.yaml": str(tmp_path / "slo.yaml")}
        server = pod["initContainers"][0]
        server_command = [*server["command"], server["args"][0].replace("/var/log/vllm/vllm.log", str(log))]

        running = subprocess.Popen(server_command, env=shell | {"MODEL": "x"}, stdout=subprocess.DEVNULL)
        try:
            words = [places.get(word, word) for word in pod["containers"][0]["args"]]
            done = subprocess.run(["kvguard", *words], env=shell, capture_output=True, text=True, timeout=60)
        finally:
            running.kill()
            running.wait()

        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("PASS  both objectives are met")

    def test_it_is_valid_where_sidecars_are(self) -> None:
        done = tool("kubernetes-validate", "--strict", "-k", "1.29", "deploy/ci/job.yaml")

        assert done.returncode == 0, done.stdout + done.stderr
        assert "WARN" not in done.stdout + done.stderr

    def test_both_containers_share_one_file(self) -> None:
        _, pod = self.parts()
        mounts = [
            {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}["log"]
            for container in (pod["initContainers"][0], pod["containers"][0])
        ]

        assert mounts == ["/var/log/vllm", "/var/log/vllm"]


class TestTheAnalysis:
    """`analysis-template.yaml`: its query, by Prometheus's own evaluation; the template is documented, not tested."""

    def metric(self) -> dict[str, Any]:
        return dict(load(CI / "analysis-template.yaml")["spec"]["metrics"][0])

    def test_both_conditions_are_set(self) -> None:
        metric = self.metric()

        assert (metric["successCondition"], metric["failureCondition"]) == ("result[0] == 1", "result[0] == 0")

    def test_the_query_always_gives_one_sample(self, tmp_path: Path) -> None:
        query = self.metric()["provider"]["prometheus"]["query"]
        query = query.replace("{{args.namespace}}", "llm").replace("{{args.pod-hash}}", "abc")
        cases = {
            1: {"one": "pass", "two": "pass"},
            0: {"one": "pass", "two": "fail", "three": "unknown"},
            -1: {"one": "pass", "two": "unknown"},
        }
        tests = [self.case(query, outcomes, value) for value, outcomes in cases.items()]
        tests.append(self.case(query, {}, -1))
        (tmp_path / "rules.yml").write_text("groups: []\n")
        rules = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
        (tmp_path / "test.yml").write_text(yaml.safe_dump(rules))

        done = tool("promtool", "test", "rules", str(tmp_path / "test.yml"))

        assert done.returncode == 0, done.stdout + done.stderr

    def case(self, query: str, outcomes: dict[str, str], value: int) -> dict[str, Any]:
        series = [
            ("kvguard_slo_met", "vllm-old-x", 0, ""),
            ("kvguard_verdict", "vllm-old-x", 1, ', kvguard_verdict="unknown"'),
        ]
        for pod, outcome in outcomes.items():
            name = f"vllm-abc-{pod}"
            series += [
                ("kvguard_verdict", name, int(state == outcome), f', kvguard_verdict="{state}"')
                for state in ("pass", "fail", "unknown")
            ]
            if outcome != "unknown":
                series.append(("kvguard_slo_met", name, int(outcome == "pass"), ""))
        return {
            "interval": "1m",
            "input_series": [
                {"series": f'{metric}{{namespace="llm", pod="{pod}"{label}}}', "values": f"{number} {number}"}
                for metric, pod, number, label in series
            ],
            "promql_expr_test": [{"expr": query, "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": value}]}],
        }
