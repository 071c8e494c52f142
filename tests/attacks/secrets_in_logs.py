"""Secrets as logs hold them: the form that each is written in, and the place in the log where it turns up."""

import json
from collections.abc import Callable

CANARY = "cAnArY7xQ9Lm2vTz"
"""Part of every secret below: it must not come out of anything."""
C = CANARY
_ENVIRONMENT = {"PATH": "/bin", "HF_TOKEN": C, "VLLM_API_KEY": C, "AWS_SECRET_ACCESS_KEY": C, "PGPASSWORD": C}
_ARGUMENTS = ["vllm", "serve", "m", "--api-key", C, "--port", "8000"]

FORMS: dict[str, str] = {
    "token of Hugging Face": f"loading with hf_{C}",
    "key of OpenAI": f"sk-proj-{C} is wrong",
    "key of Anthropic": f"sk-ant-{C}",
    "key of NVIDIA": f"nvapi-{C}",
    "token of GitLab": f"glpat-{C}",
    "key of AWS": f"AKIA{C.upper()}AB",
    "temporary key of AWS": f"ASIA{C.upper()}AB",
    "key of Google": f"AIza{C}{C}{C}",
    "JSON web token": f"eyJ{C}.eyJ{C}.{C}",
    "option": f"vllm serve m --api-key {C} --port 8000",
    "option with several": f"vllm serve m --api-key first {C} --port 8000",
    "option with =": f"vllm serve m --api-key={C}",
    "option in quotes": f"vllm serve m --api-key 'a {C}' --port 8000",
    "option of another name": f"vllm serve m --hf-token {C} --ssl-keyfile-password {C} --port 8000",
    "argument vector": repr(_ARGUMENTS),
    "argument vector in JSON": json.dumps(_ARGUMENTS),
    "argument vector in JSON in JSON": json.dumps(json.dumps(_ARGUMENTS)),
    "namespace": f"Namespace(model='m', api_key=['{C}', 'b{C}'], hf_token='{C}', port=8000)",
    "tuple": f"api_key=('{C}', 'b{C}'), port=8000",
    "dict": repr({"api_key": [C, C], "hf_token": C, "port": 8000}),
    "dict of bytes": repr({"api_key": C.encode()}),
    "dict in a dict": repr({"credentials": {"user": "u", "value": C}}),
    "JSON": json.dumps({"api_key": C, "port": 8000}),
    "JSON in JSON": json.dumps(json.dumps({"api_key": C, "token": C})),
    "Ruby's hash": f'{{"api_key" => "{C}"}}',
    "environment": "\t".join(f"{name}={value}" for name, value in _ENVIRONMENT.items()),
    "environment in Python": f"environ({_ENVIRONMENT!r})",
    "environment in a shell": f'declare -x HF_TOKEN="{C}"',
    "environment of a container": f"docker run -e HF_TOKEN={C} --env VLLM_API_KEY={C} vllm/vllm-openai --model m",
    "environment of a pod": json.dumps([{"name": name, "value": value} for name, value in _ENVIRONMENT.items()]),
    "environment of a pod in YAML": f"- name: HF_TOKEN   value: {C}",
    "settings": f"SECRET_KEY = '{C}' session_token = {C}",
    "key of Azure": f"AccountName=x;AccountKey={C};EndpointSuffix=core",
    "password": f"password: {C}",
    "password in a URL": f"GET https://bob:{C}@host/x",
    "password with marks in a URL": f"postgres://bob:a@{C}/b@host/x",
    "proxies": repr({"https": f"http://bob:{C}@proxy:3128", "http": f"http://:{C}@proxy:3128"}),
    "proxy in the environment": f"HTTPS_PROXY=http://bob:{C}@proxy:3128 no_proxy=localhost",
    "proxy without a scheme": f"https_proxy=bob:{C}@proxy:3128",
    "password of curl": f"curl -u bob:{C} http://host",
    "query": f"https://host/x?token={C}&api_key={C}",
    "signed query": f"https://host/x?sv=2026&sig={C}&X-Amz-Signature={C}",
    "hook of Slack": f"https://hooks.slack.com/services/T0/{C}",
    "header": f"Authorization: Bearer {C}",
    "header of another scheme": f"authorization: Digest username=bob, response={C}",
    "header alone": f"bearer {C}",
    "headers": repr({"authorization": f"Token {C}", "x-api-key": C, "cookie": f"a=1; b={C}"}),
    "headers of ASGI": repr([(b"authorization", f"Bearer {C}".encode()), (b"x-api-key", C.encode())]),
    "cookie": f"Set-Cookie: session={C}; a={C}",
    "private key": f"-----BEGIN RSA PRIVATE KEY-----\\n{C}\\n{C}\\n-----END RSA PRIVATE KEY-----",
}
"""What a secret looks like."""

_STAMP = "11-29 16:54:34"


def _record(file: str, text: str, level: str = "INFO", tag: str = "EngineCore pid=7") -> str:
    return f"({tag}) {level} {_STAMP} [{file}] {text}"


_BANNER = "Initializing a V1 LLM engine (v0.32.0) with config: "
_CAPACITY = _record(
    "kv_cache_utils.py:2327",
    "GPU KV cache size: 40,960 tokens, Maximum concurrency for 4,096 tokens per request: 10.00x",
)
_BEGINS = _record("core.py:133", f"{_BANNER}model='m', max_seq_len=4096, seed=0")


def _arguments(key: str) -> Callable[[str], list[str]]:
    def write(text: str) -> list[str]:
        told = f"non-default args: {{'model_tag': 'm', {key!r}: {text!r}}}"
        return [_record("api_utils.py:286", told, tag="APIServer pid=1"), _CAPACITY]

    return write


PLACES: dict[str, Callable[[str], list[str]]] = {
    "a line of a wrapper": lambda text: [text, f"+ {text}", _BEGINS, _CAPACITY],
    "a container's command": lambda text: [f"docker run --rm x {text}", json.dumps({"log": text}), _BEGINS, _CAPACITY],
    "unknown argument": _arguments("extra"),
    "model in the arguments": _arguments("model"),
    "name in the arguments": _arguments("served_model_name"),
    "dtype in the arguments": _arguments("kv_cache_dtype"),
    "namespace of an old release": lambda text: [
        f"INFO {_STAMP} api_server.py:495] args: Namespace(model={text!r}, x={text!r})",
        _CAPACITY,
    ],
    "model in the banner": lambda text: [
        _record("core.py:133", f"{_BANNER}model={text!r}, tokenizer={text!r}, max_seq_len=4096, seed=0"),
        _CAPACITY,
    ],
    "unknown wording": lambda text: [_BEGINS, _record("x.py:1", f"KV cache of 5 GiB with {text}"), _CAPACITY],
    "unknown wording in JSON": lambda text: [
        _BEGINS,
        json.dumps({"message": f"KV cache 5 {text}", "name": "vllm", "process": 7, "filename": "x.py"}),
        _CAPACITY,
    ],
    "failure": lambda text: [
        _BEGINS,
        _record("core.py:1", "EngineCore failed to start.", "ERROR"),
        _record("core.py:1", "Traceback (most recent call last):", "ERROR"),
        _record("core.py:1", f"ValueError: {text}", "ERROR"),
    ],
    "raw traceback": lambda text: [
        _BEGINS,
        "Traceback (most recent call last):",
        '  File "x.py", line 1, in <module>',
        f"    raise ValueError({text!r})",
        f"ValueError: {text}",
    ],
    "failure behind ready": lambda text: [
        _BEGINS,
        _CAPACITY,
        "(APIServer pid=1) INFO:     Application startup complete.",
        _record("core.py:1", f"EngineCore encountered a fatal error. {text}", "ERROR"),
        _record("core.py:1", f"RuntimeError: {text}", "ERROR"),
    ],
}
"""Where it stands: the lines of a log around it."""
