"""The pods that the chart makes: the gate, the log's way, the rights, the order of things."""

import argparse
import importlib
import json

import pytest
import yaml

from tests.helm.conftest import CHART, CI_VALUES, HELMS, containers, pod_specs, run

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def guard_of(spec):
    return next(item for item in containers(spec) if item["name"] == "kvguard")


def vllm_of(spec):
    return next(item for item in containers(spec) if item["name"] == "vllm")


def template_of(deployment):
    return deployment["spec"]["template"]["spec"]


@pytest.mark.parametrize("kube,where", [("1.27", "containers"), ("1.28", "containers"), ("1.29", "initContainers")])
def test_the_guard_is_a_native_sidecar_where_the_cluster_has_them(one, kube, where):
    spec = template_of(one("Deployment", "standalone", kube=kube))
    guard = next(item for item in spec[where] if item["name"] == "kvguard")
    assert guard.get("restartPolicy") == ("Always" if where == "initContainers" else None)
    assert [item["name"] for item in containers(spec)].count("kvguard") == 1


@pytest.mark.parametrize("wish,where", [("always", "initContainers"), ("never", "containers")])
def test_the_sidecars_kind_can_be_chosen(one, wish, where):
    spec = template_of(one("Deployment", "standalone", f'guard.native="{wish}"', kube="1.28"))
    assert "kvguard" in [item["name"] for item in spec[where]]


@pytest.mark.parametrize("values", ["standalone", "outside", "logging-config", "pod-log"])
def test_readiness_is_always_the_gate_and_nothing_else_asks_for_it(render, values):
    for spec in pod_specs([item for item in render(values) if item["kind"] == "Deployment"]):
        guard = guard_of(spec)
        assert guard["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "kvguard"}
        assert guard["startupProbe"]["httpGet"]["path"] == guard["livenessProbe"]["httpGet"]["path"] == "/livez"


def test_observing_differs_from_enforcing_in_the_slo_alone(render):
    observing, enforcing = (render("standalone", f'slo.gate.mode="{mode}"') for mode in ("observe", "enforce"))
    changed = [
        (one["kind"], one["metadata"]["name"]) for one, other in zip(observing, enforcing, strict=True) if one != other
    ]
    assert changed == [("ConfigMap", "osprey-kvguard-slo")]


@pytest.mark.parametrize("values", ["standalone", "standalone-everything", "outside"])
def test_an_edited_slo_restarts_nothing(render, values):
    before, after = (render(values, f"slo.objectives.min_concurrency={bound}") for bound in (2, 3))
    for one, other in zip(before, after, strict=True):
        assert one.get("spec") == other.get("spec")
    for spec in pod_specs(before):
        mounts = [mount for item in containers(spec) for mount in item.get("volumeMounts", [])]
        assert not any("subPath" in mount for mount in mounts)


def test_a_new_version_of_the_chart_restarts_nothing_either(one):
    template = one("Deployment", "standalone")["spec"]["template"]
    assert "helm.sh/chart" not in template["metadata"]["labels"]
    assert "app.kubernetes.io/version" not in template["metadata"]["labels"]
    assert not any("checksum" in key for key in template["metadata"]["annotations"])


def test_the_slo_arrives_as_it_was_written_with_its_files(one):
    data = one("ConfigMap", "standalone-everything", name="-slo")["data"]
    given = yaml.safe_load((CHART / "ci/standalone-everything-values.yaml").read_text())
    assert yaml.safe_load(data["slo.yaml"]) == {"version": 1, **given["slo"]}
    assert json.loads(data["baseline.json"]) == {"kind": "baseline"}
    assert json.loads(data["config.json"]) == {"num_hidden_layers": 32}


@pytest.mark.parametrize("helm", ["helm3", "helm4"])
@pytest.mark.parametrize("tokens", [1000000, 1048576, 999999999])
def test_large_numbers_stay_whole_numbers(one, tokens, helm):
    data = one("ConfigMap", "standalone", f"slo.objectives.min_kv_cache_tokens={tokens}", name="-slo", helm=helm)[
        "data"
    ]
    assert yaml.safe_load(data["slo.yaml"])["objectives"]["min_kv_cache_tokens"] == tokens
    assert str(tokens) in data["slo.yaml"]


def test_vllm_runs_under_the_wrapper_with_its_own_command_behind_it(one):
    vllm = vllm_of(template_of(one("Deployment", "standalone")))
    assert vllm["command"] == ["/bin/sh", "/opt/kvguard/kvguard-tee"]
    assert vllm["args"] == [
        "vllm",
        "serve",
        "acme/osprey-8b",
        "--host",
        "0.0.0.0",
        "--port",
        "8000",
        "--max-model-len",
        "16384",
    ]
    wrapper = one("ConfigMap", "standalone", name="-log-way")["data"]["kvguard-tee"]
    assert wrapper.strip() == (CHART / "kustomize/tee/kvguard-tee").read_text().strip()


def test_by_logging_configuration_the_command_stays_vllms_own(one):
    vllm = vllm_of(template_of(one("Deployment", "logging-config")))
    assert vllm["command"] == ["vllm", "serve"]
    assert {"name": "VLLM_LOGGING_CONFIG_PATH", "value": "/opt/kvguard/logging.json"} in vllm["env"]
    config = json.loads(one("ConfigMap", "logging-config", name="-log-way")["data"]["logging.json"])
    assert config["handlers"]["kvguard"]["filename"] == "/var/log/vllm/vllm.log"
    assert config["handlers"]["kvguard"]["maxBytes"] == 32 * 1024 * 1024


@pytest.mark.parametrize("values,reads", [("standalone", "/var/log/vllm/vllm.log"), ("pod-log", "pod:self/vllm")])
def test_the_guard_is_told_where_to_read(one, values, reads):
    spec = template_of(one("Deployment", values))
    assert f"--log={reads}" in guard_of(spec)["args"]
    shared = [volume["name"] for volume in spec["volumes"] if volume["name"] == "vllm-log"]
    assert shared == (["vllm-log"] if reads.startswith("/") else [])


@pytest.mark.parametrize("values", ["standalone", "logging-config"])
def test_the_volume_is_never_the_reason_of_an_eviction(one, values):
    """What can be written at most stays below the volume's limit: two copies, and more with rotation by process."""
    spec = template_of(one("Deployment", values, "log.maxMiB=10"))
    limit = next(volume for volume in spec["volumes"] if volume["name"] == "vllm-log")["emptyDir"]["sizeLimit"]
    assert int(limit.removesuffix("Mi")) >= 3 * 10


@pytest.mark.parametrize("values", CI_VALUES)
def test_only_the_guard_sees_a_token_and_only_where_it_needs_one(render, values):
    needs_token = values in {"pod-log", "outside"}
    for spec in pod_specs(render(values)):
        assert spec["automountServiceAccountToken"] is False
        for item in containers(spec):
            holds = any(mount["mountPath"] == TOKEN_PATH for mount in item.get("volumeMounts", []))
            assert holds == (needs_token and item["name"] == "kvguard")


@pytest.mark.parametrize("values", CI_VALUES)
def test_every_container_is_restricted(render, values):
    for spec in pod_specs(render(values)):
        assert spec["securityContext"]["runAsNonRoot"] is True
        for item in containers(spec):
            context = item["securityContext"]
            assert (context["runAsUser"], context["runAsNonRoot"]) == (65532, True)
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize("values", CI_VALUES)
def test_the_platform_gives_the_user_where_none_is_named(render, values):
    for spec in pod_specs(render(values, "runAsUser=null")):
        for context in [spec["securityContext"], *(item["securityContext"] for item in containers(spec))]:
            assert not {"runAsUser", "runAsGroup", "fsGroup"} & set(context)


@pytest.mark.parametrize("helm", HELMS)
def test_another_user_is_every_containers_but_where_vllm_has_its_own(render, helm):
    settings = ("runAsUser=1000850000", "vllm.securityContext.runAsUser=2000")
    spec = template_of(next(o for o in render("standalone", *settings, helm=helm) if o["kind"] == "Deployment"))
    assert guard_of(spec)["securityContext"]["runAsUser"] == 1000850000
    assert spec["securityContext"]["fsGroup"] == 1000850000
    assert vllm_of(spec)["securityContext"]["runAsUser"] == 2000


def test_pods_of_long_names_have_each_a_guard(render):
    stem = "meta-llama-3-1-70b-instruct-deployment-vllm-7c9f8d7b6c"
    pods = [f"{stem}-abcde", f"{stem}-fghij", "osprey-0"]
    deployments = [o for o in render("outside", f"outside.pods={json.dumps(pods)}") if o["kind"] == "Deployment"]
    names = [item["metadata"]["name"] for item in deployments]
    assert len(set(names)) == 3
    assert max(map(len, names)) <= 63
    assert names[2] == "osprey-kvguard-osprey-0"


def test_a_pod_by_its_name_is_all_the_outside_guard_may_read(one):
    rules = one("Role", "outside")["rules"]
    assert rules == [
        {
            "apiGroups": [""],
            "resources": ["pods", "pods/log"],
            "verbs": ["get"],
            "resourceNames": ["osprey-0", "osprey-1"],
        }
    ]


def test_events_are_written_by_right_only_on_request(one):
    rules = one("Role", "pod-log")["rules"]
    assert rules[1] == {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}
    assert "--events" in guard_of(template_of(one("Deployment", "pod-log")))["args"]


@pytest.mark.parametrize("values", ["standalone", "bare", "beside"])
def test_without_the_api_there_is_no_role(render, values):
    assert not {"Role", "RoleBinding"} & {item["kind"] for item in render(values)}


def test_outside_has_one_guard_a_pod_and_each_can_be_waited_for(render):
    deployments = [item for item in render("outside") if item["kind"] == "Deployment"]
    assert [item["metadata"]["name"] for item in deployments] == ["osprey-kvguard-osprey-0", "osprey-kvguard-osprey-1"]
    logs = [guard_of(template_of(item))["args"][1] for item in deployments]
    assert logs == ["--log=pod:llm/osprey-0/vllm", "--log=pod:llm/osprey-1/vllm"]
    selectors = [json.dumps(item["spec"]["selector"]) for item in deployments]
    assert len(set(selectors)) == 2


def test_a_rollout_may_take_as_long_as_vllm_may(one):
    spec = one("Deployment", "standalone")["spec"]
    probe = vllm_of(spec["template"]["spec"])["startupProbe"]
    assert spec["progressDeadlineSeconds"] == probe["periodSeconds"] * probe["failureThreshold"] + 300
    assert one("Deployment", "standalone-everything")["spec"]["progressDeadlineSeconds"] == 3600


def test_gpus_join_the_other_resources(one):
    resources = vllm_of(template_of(one("Deployment", "standalone-everything")))["resources"]
    assert resources == {
        "limits": {"amd.com/gpu": 2, "memory": "64Gi"},
        "requests": {"amd.com/gpu": 2, "cpu": "4", "memory": "32Gi"},
    }


def test_a_held_back_pod_can_still_be_asked_and_does_not_stop_a_drain(one):
    service = one("Service", "standalone", name="-guard")["spec"]
    assert service["publishNotReadyAddresses"] is True
    assert one("PodDisruptionBudget", "standalone-everything")["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_a_made_cache_outlives_the_release(one):
    claim = one("PersistentVolumeClaim", "standalone-everything")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    volumes = template_of(one("Deployment", "standalone-everything"))["volumes"]
    assert {"name": "cache", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}} in volumes


def test_the_gate_job_asks_before_the_rollout_and_its_end_is_the_checks(one):
    job = one("Job", "gate-job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert job["spec"]["backoffLimit"] == 0
    spec = job["spec"]["template"]["spec"]
    vllm, check = spec["initContainers"][0], spec["containers"][0]
    assert vllm["restartPolicy"] == "Always"
    assert not {"startupProbe", "livenessProbe", "readinessProbe"} & vllm.keys()
    assert vllm["args"] == vllm_of(template_of(one("Deployment", "gate-job")))["args"]
    assert check["args"][:2] == ["check", "/var/log/vllm/vllm.log"]
    assert "--until=ready" in check["args"]
    config = one("ConfigMap", "gate-job", name="-gate")
    assert config["metadata"]["annotations"]["helm.sh/hook-weight"] == "-5"
    assert config["data"].keys() == {"slo.yaml", "kvguard-tee", "logging.json"}


@pytest.mark.parametrize("way", ["podLog", "loggingConfig"])
def test_the_job_reads_by_the_wrapper_whatever_the_deployment_does(one, way):
    spec = one("Job", "gate-job", f'log.from="{way}"')["spec"]["template"]["spec"]
    assert spec["initContainers"][0]["command"] == ["/bin/sh", "/opt/kvguard/kvguard-tee"]
    assert "VLLM_LOGGING_CONFIG_PATH" not in json.dumps(spec["initContainers"])
    mounts = {mount["name"] for mount in spec["initContainers"][0]["volumeMounts"]}
    assert {"vllm-log", "kvguard-log-way"} <= mounts


def test_the_job_waits_for_no_claim_that_the_release_has_yet_to_make(one):
    job = one("Job", "gate-job", 'vllm.cache={"existingClaim":"","persistent":true}')
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"


@pytest.mark.parametrize("values,ports", [("network-policy", [9400, 8000]), ("outside", [9400])])
def test_the_network_policy_lets_in_who_is_named(one, values, ports):
    spec = one("NetworkPolicy", values)["spec"]
    assert [rule["ports"][0]["port"] for rule in spec["ingress"]] == ports
    peers = json.dumps(spec["ingress"][0]["from"])
    assert '"monitoring"' in peers
    assert '"app.kubernetes.io/component": "test"' in peers
    assert ("Egress" in spec["policyTypes"]) == (values == "outside")


def test_the_test_pod_asks_for_the_report(one):
    pod = one("Pod", "standalone")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    script, address = pod["spec"]["containers"][0]["args"]
    assert address == "http://osprey-kvguard-guard:9400/v1/report"
    assert script.strip() == (CHART / "files/ask-report.py").read_text().strip()


def notes(values, *settings):
    """NOTES.txt; only Helm 4 shows it without a cluster."""
    chosen = [f"--set-json={setting}" for setting in settings]
    answer = run(
        "helm4", "install", "osprey", CHART, "-f", CHART / f"ci/{values}-values.yaml", "--dry-run=client", *chosen
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split("NOTES:\n")[1]


def test_notes_warn_of_a_surge_that_needs_free_gpus():
    text = notes("standalone")
    assert "maxSurge 1 needs 1 free nvidia.com/gpu" in text
    assert "The gate observes" in text


def test_notes_call_a_gate_without_spare_pods_an_outage():
    enforcing = ('slo.gate.mode="enforce"', 'vllm.rollout={"maxSurge":0,"maxUnavailable":1}')
    assert "a regression is an OUTAGE" in notes("standalone", *enforcing)
    assert "OUTAGE" not in notes("standalone", *enforcing, "vllm.replicas=3")


def test_notes_hand_over_the_sidecar_as_it_is_rendered(render):
    text = notes("beside")
    pasted = yaml.safe_load(text[text.index("initContainers:") : text.index("# in vLLM's container")])
    assert pasted["initContainers"][0]["args"][0] == "serve"
    assert [volume["name"] for volume in pasted["volumes"]] == [
        "kvguard-slo",
        "kvguard-record",
        "vllm-log",
        "kvguard-log-way",
    ]
    of_the_release = {item["metadata"]["name"] for item in render("beside") if item["kind"] == "ConfigMap"}
    # `helm install` ran in another namespace and cluster version, under the same name
    assert {volume["configMap"]["name"] for volume in pasted["volumes"] if "configMap" in volume} == of_the_release


@pytest.mark.parametrize("values", CI_VALUES)
def test_kvguard_takes_the_arguments_that_the_chart_gives_it(render, values):
    for spec in pod_specs(render(values)):
        for item in containers(spec):
            if item["name"] == "kvguard":
                command, *words = item["args"]
                parser = argparse.ArgumentParser()
                importlib.import_module(f"kvguard.cli.{command}").configure(parser)
                parser.parse_args(words)


def test_a_token_reaches_the_guard_the_monitors_and_the_test_pod(one):
    spec = template_of(one("Deployment", "monitoring"))
    guard = guard_of(spec)
    assert "--token-file=/etc/kvguard-token/token" in guard["args"]
    assert {"name": "kvguard-access", "mountPath": "/etc/kvguard-token", "readOnly": True} in guard["volumeMounts"]
    assert {"name": "kvguard-access", "secret": {"secretName": "guard-token"}} in spec["volumes"]
    credentials = {"credentials": {"name": "guard-token", "key": "token"}}
    assert one("PodMonitor", "monitoring")["spec"]["podMetricsEndpoints"][0]["authorization"] == credentials
    assert one("ServiceMonitor", "monitoring")["spec"]["endpoints"][0]["authorization"] == credentials
    assert one("Pod", "monitoring")["spec"]["containers"][0]["env"][0]["name"] == "KVGUARD_TOKEN"
