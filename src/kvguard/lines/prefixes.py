"""What can stand before a message: the table of envelopes (runtimes, runners, viewers) and of loggers' own prefixes.

`head.py` takes them off the beginning of a line, one after the other. A user's or a wrapper's free text has no row: a
message is never searched for behind text that no row describes.
"""

from kvguard.events import Trust
from kvguard.slotted import dataclass

_DIGITS = tuple("0123456789")
_LOWER = tuple("abcdefghijklmnopqrstuvwxyz")
_UPPER = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_TIMES = (*_DIGITS, *(f"[{digit}" for digit in _DIGITS))
_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL"
LEVEL = rf"(?P<level>{_LEVELS})"
_SOURCES = (".py:", ".rs:")
"""How vLLM's source files end: Python, and its front end in Rust."""
_LEVEL_WORDS = tuple(_LEVELS.split("|"))
CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ISO = rf"\d{{4}}[-/]\d\d[-/]\d\d[T ]{CLOCK}(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
JOURNAL = rf"[A-Z][a-z]{{2}} [ \d]\d {CLOCK}"
SHORT = rf"\d\d-\d\d {CLOCK}"
TAG = (
    r"\((?:(?P<tag>[A-Za-z_][\w.:#/@+-]{0,80}+(?:\((?:[\w.:#+-]{1,80}+|\([\w.:#+-]{0,80}+\)){0,8}+\))?"
    r"(?: [A-Z][A-Za-z0-9_]{0,80}+)?),? )?"
    r"(?:(?P<rank>rank=\d{1,6}+),? )?pid=(?P<pid>\d{1,10}+)(?:, ip=(?P<node>[\w.:-]{1,80}+))?\) ?"
)
"""A process tag of vLLM, Ray or SkyPilot. Every part has a bound: what is read here is remembered for each process."""
CONTAINER = rf"(?!(?:{_LEVELS})\b)(?P<container>[A-Za-z][\w.-]{{0,79}}+)"


@dataclass(frozen=True, slots=True)
class Prefix:
    """One thing that can stand before a message."""

    name: str
    begins: tuple[str, ...]
    """Texts with one of which it begins. Like `holds`, it spares most lines the pattern."""
    holds: tuple[str, ...]
    """Texts one of which it holds, or the line behind it; none where nothing is certain."""
    pattern: str
    trust: Trust = Trust.RAW
    """What it vouches for."""
    outer: bool = False
    """Whether it frames whatever a process prints (an envelope), and is no part of a logger's own format."""
    final: bool = False
    """Whether the message follows at once: nothing behind it is a prefix any more."""
    ambiguous: bool = False
    """Whether a message may begin like it: then the text with the prefix stays a candidate."""
    where: str = ""
    """Who prints it, and in which releases."""


def _envelope(
    name: str, begins: tuple[str, ...], holds: tuple[str, ...], pattern: str, where: str, ambiguous: bool = False
) -> Prefix:
    return Prefix(name, begins, holds, pattern, outer=True, ambiguous=ambiguous, where=where)


def _logger(
    name: str,
    begins: tuple[str, ...],
    holds: tuple[str, ...],
    pattern: str,
    trust: Trust,
    where: str,
    final: bool = False,
    ambiguous: bool = False,
) -> Prefix:
    return Prefix(name, begins, holds, pattern, trust, final=final, ambiguous=ambiguous, where=where)


PREFIXES: tuple[Prefix, ...] = (
    _logger(
        "vllm-record",
        _LEVEL_WORDS,
        ("]",),
        rf"{LEVEL} (?P<stamp>(?:\d{{4}}-)?\d\d-\d\d (?:{CLOCK}|\d\d:\d\d)) \[(?P<file>[^\]\s]*?)(?::\d++)?\](?: |$)",
        Trust.RECORD,
        "vLLM 0.8.0 and later; at DEBUG a shortened path; some builds name the function",
        final=True,
    ),
    _logger(
        "vllm-record-cut",
        _UPPER + _DIGITS,
        _SOURCES,
        rf"(?:[A-Z]{{1,7}} )?(?P<stamp>{SHORT}) \[(?P<file>[\w./-]++):\d++\](?: |$)",
        Trust.RECORD,
        "the same where a paste has lost the level's beginning",
        final=True,
    ),
    _logger(
        "vllm-record-old",
        _LEVEL_WORDS,
        _SOURCES,
        rf"{LEVEL} (?P<stamp>(?:\d{{4}}-)?+{SHORT}) (?P<file>[\w./-]++):\d++\](?: |$)",
        Trust.RECORD,
        "vLLM 0.1.0 to 0.7.3; NVIDIA NIM prints the year and milliseconds",
        final=True,
    ),
    _logger(
        "vllm-record-untimed",
        _LEVEL_WORDS,
        _SOURCES,
        rf"{LEVEL} (?:(?:\.{{3}}|…) )?\[?(?P<file>[\w./-]++):\d++\](?: |$)",
        Trust.RECORD,
        "the same where a viewer or a paste has left the stamp out",
        final=True,
    ),
    _logger(
        "vllm-record-plain",
        _LEVEL_WORDS,
        (".py:",),
        rf"{LEVEL} (?P<file>[\w/-]{{1,80}}+\.py):\d++ ++(?=\S)",
        Trust.RECORD,
        "the same where the bracket is left out as well",
        final=True,
    ),
    _logger(
        "source-line",
        (*_LOWER, "_"),
        (".py:",),
        r"(?P<file>[a-z_]\w{0,80}+\.py):\d++(?:\]| ) *+(?=\S)",
        Trust.RAW,
        "a record of which notes and reports have left the source line alone",
        ambiguous=True,
    ),
    _logger(
        "process-tag",
        ("(",),
        ("pid=",),
        TAG,
        Trust.TAGGED,
        "vLLM's processes from 0.4.2, Ray's actors, SkyPilot's tasks",
    ),
    _logger(
        "process-name",
        ("(",),
        ("API", "Api", "EngineCore", "Worker"),
        r"\((?:APIServer|ApiServer_\d++|(?:EngineCore|Worker)(?:_[A-Z]++\d++)*+|VllmWorker|RayWorkerWrapper)\) (?=\S)",
        Trust.RAW,
        "vLLM's processes where somebody has taken the pids off",
    ),
    _logger(
        "uvicorn",
        _LEVEL_WORDS,
        (": ",),
        r"(?P<level>INFO|WARNING|ERROR|DEBUG|CRITICAL): {1,5}(?=\S)",
        Trust.TAGGED,
        "uvicorn, and Python's default handlers",
        final=True,
    ),
    _logger(
        "torchserve",
        ("[",),
        ("MODEL_LOG",),
        rf"\[(?:{_LEVELS}) *+\] [\w.-]++ MODEL_LOG - ",
        Trust.RAW,
        "TorchServe, around whatever its worker prints",
    ),
    _logger(
        "djl",
        (*_LEVEL_WORDS, "["),
        ("PyProcess",),
        rf"(?:(?:{_LEVELS}) ++|\[(?:{_LEVELS}) *+\] )PyProcess (?:- )?W-\S+?-std(?:out|err): ",
        Trust.RAW,
        "DJL Serving (SageMaker), around whatever its worker prints",
    ),
    _logger(
        "function-logger",
        _LEVEL_WORDS,
        (": ",),
        rf"{LEVEL} ++(?P<file>[a-z_][\w.]*+(?:::\w++)*+): (?=\S)",
        Trust.RECORD,
        "loggers that print module and function (Dynamo's workers), after a timestamp",
        final=True,
        ambiguous=True,
    ),
    _logger(
        "python-basic",
        _LEVEL_WORDS,
        (":",),
        rf"{LEVEL}:(?P<file>[\w.]++):(?:\d++:)? ?",
        Trust.RECORD,
        "logging.basicConfig",
    ),
    _logger(
        "python-basic-time",
        _LEVEL_WORDS,
        (":",),
        rf"{LEVEL}:(?P<stamp>{ISO}):(?:(?P<file>[a-z_][\w.]*+):)? ?",
        Trust.RECORD,
        "logging.basicConfig with a time (verl's servers)",
    ),
    _logger(
        "python-dashes",
        ("-",),
        (" - ",),
        rf"- (?P<file>[\w.]++) - (?:\d++ - )?{LEVEL} - (?:[\w./]++:\d++ - )?",
        Trust.RECORD,
        "the usual `%(asctime)s - %(name)s - %(levelname)s - %(message)s`, after its timestamp",
    ),
    _logger(
        "python-dashes-level",
        ("-",),
        (" - ",),
        rf"- {LEVEL} - (?:[\w./]++(?::\d++)? - )?(?:[\w.]++: (?=\S))?",
        Trust.RECORD,
        "handlers that print the level after the timestamp",
    ),
    _logger(
        "python-process",
        (*_LOWER, *_DIGITS, "_"),
        _LEVEL_WORDS,
        rf"(\d++ )?+(?P<file>[a-z_][\w.]*+)(?(1)| \d++) {LEVEL} ++(?:\[[^\]\s]++\] )?",
        Trust.RECORD,
        "Xinference, KServe: name, process and level after the timestamp",
    ),
    _logger(
        "python-brackets",
        ("[",),
        (".py:",),
        r"\[(?P<file>[\w./-]{1,80}?\.py):\d++\]:? ?",
        Trust.RAW,
        "handlers that print the source line in brackets behind their own prefix",
    ),
    _logger(
        "loguru",
        (*_LEVEL_WORDS, "|"),
        ("| ",),
        rf"(?:\| )?{LEVEL} *+\| (?P<file>[\w.]++):[\w<>]++:\d++ - ",
        Trust.RECORD,
        "loguru, after its timestamp",
    ),
    _logger(
        "fastchat",
        (*_LEVEL_WORDS, "|"),
        ("| ",),
        rf"(?:\| )?(?:{_LEVELS}) *+\| [\w.]++ \| ",
        Trust.RAW,
        "FastChat, around whatever its worker prints",
    ),
    _logger(
        "glog",
        tuple("EFIW"),
        ("] ",),
        rf"[IWEF]\d{{4}} {CLOCK} ++\d++ [\w./-]++:\d++\] ",
        Trust.RAW,
        "Triton and other servers with Google's logger",
    ),
    _envelope(
        "iso-time",
        _TIMES,
        (),
        rf"\[?(?P<stamp>{ISO})\]?:?(?:\s++(?:[|¦~] )?|$)",
        "docker -t, kubectl --timestamps, CRI, CI runners, viewers",
    ),
    _envelope(
        "short-time",
        _TIMES,
        (),
        rf"\[?(?P<stamp>{SHORT}|{CLOCK})Z?+\]?(?:\s++|$)",
        "wrappers that print the time alone",
        ambiguous=True,  # the rest of a record's prefix that was cut before its clock begins so
    ),
    _envelope(
        "slash-time",
        _TIMES,
        ("/",),
        rf"\[?\d\d/\d\d(?:/\d\d(?:\d\d)?)? {CLOCK}\]?\s++",
        "rich's and others' handlers",
    ),
    _envelope(
        "cri-stream",
        ("stdout", "stderr"),
        (),
        r"(?:stdout|stderr) (?P<partial>[FP])(?: |$)",
        "CRI: containerd, CRI-O; after a timestamp",
    ),
    _envelope("gitlab-stream", _DIGITS, (), r"\d\d[OE][ +]?(?=\S|$)", "GitLab's runner, after a timestamp"),
    _envelope("buildkite-time", ("_bk;t=",), (), r"_bk;t=\d++", "Buildkite, where the escape characters are lost"),
    _envelope("docker-build", ("#",), (), r"#\d{1,3} \d{1,5}\.\d{1,3} ", "docker build"),
    _envelope("mpi", ("[",), ("]<std",), r"\[\d++,\d++\]<std(?:out|err)>: ?", "mpirun --tag-output"),
    _envelope("kubectl-prefix", ("[pod/",), (), r"\[pod/(?P<container>[^\]\s]{1,250}+)\] ", "kubectl logs --prefix"),
    _envelope(
        "stern",
        (*_LOWER, *_DIGITS, "."),
        ("-",),
        rf"(?P<container>[a-z0-9.]{{1,80}}+(?:-[a-z0-9.]{{1,80}}+){{2,12}}+ [a-z0-9-]{{1,80}}+) "
        rf"(?=[\[({{]|(?:{_LEVELS})\b|\d{{4}}-)",
        "stern: pod and container",
    ),
    _envelope(
        "compose",
        _LOWER + _UPPER,
        ("|", "¦"),
        rf"{CONTAINER} *+[|¦](?: |$)",
        "docker compose, overmind, foreman",
        ambiguous=True,
    ),
    _envelope("pm2", _DIGITS, ("|",), r"\d{1,3}\|(?P<container>[\w.-]{1,60}+) *+\| ", "pm2"),
    _envelope("box", tuple("│┃║▌|¦"), (), r"[│┃║▌|¦] ?(?=.*[│┃║|¦] *$)", "tmux, k9s, rich panels"),
    _envelope(
        "syslog",
        (*_LOWER, *_UPPER, *_DIGITS, *"_<.-"),
        ("]: ", " - ", " kernel: "),
        rf"(?:<\d{{1,3}}>\d? ?)?(?:(?P<stamp>{JOURNAL}|{ISO}) )?"
        rf"[\w.-]{{1,80}}+ (?:kernel: |[\w./@:-]{{1,80}}+(?:\[\d++\]: | \d++ \S++ - ))",
        "journald and syslog, with their own or an ISO timestamp",
    ),
    _envelope(
        "labels",
        ("{",),
        ('="',),
        r'(?P<container>\{(?:\w{1,60}+="(?:[^"\\]|\\.){0,200}+"(?:, ?|(?=\}))){1,30}+\}) ++(?=\S)',
        "logcli: a stream's labels, after a timestamp",
    ),
    _envelope(
        "name-of-object",
        (*_LOWER, *_UPPER),
        ('{"',),
        rf"(?!(?:{_LEVELS})\b)(?P<container>[A-Za-z][\w./-]{{0,120}}+(?:(?: ++| › )[a-z0-9][\w.-]{{0,80}}+)?+):? ++"
        r'(?=\{"\w)',
        "stern, kubetail, aws logs tail, parallel shells: names before a JSON object",
    ),
    _envelope(
        "epoch",
        ("1",),
        (),
        r"1\d{9}(?:\d{3}|\d{6}|\d{9})?+(?:\.\d{1,9})?+(?:,| \| | ++)(?=\S)",
        "exports of log stores: seconds since 1970, or less than them",
    ),
    _envelope("srun-label", _DIGITS, (": ",), r"\d{1,5}: ", "srun --label", ambiguous=True),
    _envelope(
        "line-number",
        (*_DIGITS, "L"),
        (),
        r"(?:Line )?\d{1,7}(?:[:|\t]|→|  ++) ?(?=\S)",
        "grep -n, cat -n, viewers",
        ambiguous=True,
    ),
    _envelope(
        "quote",
        (*_DIGITS, *">▎▏▍┃", "#", "//", "`", "- ", "* ", "• "),
        (),
        r"(?:[>▎▏▍┃] ?|#++ |//++ |`{1,3}|[-*•] |\d{1,3}[.)] )",
        "quoted, commented or listed pastes",
        ambiguous=True,
    ),
    _logger(
        "bracketed-level", ("[",), ("]",), rf"\[(?i:{LEVEL}) *+\] ?+", Trust.TAGGED, "handlers that bracket the level"
    ),
    _logger(
        "bracket",
        ("[",),
        ("]",),
        r"\[(?:[Ss]tage[-_ ](?P<stage>\d{1,4})|[^\[\]]{1,80}+)\](?::?+ ++|:(?=\[))",
        Trust.RAW,
        "VLLM_LOGGING_PREFIX, stages, ranks: free text in brackets",
        ambiguous=True,
    ),
    _logger(
        "bare-level",
        _LEVEL_WORDS,
        (),
        rf"{LEVEL}(?: ++(?:(?:\.{{3}}|…) )?|:)(?=\S)",
        Trust.TAGGED,
        "logs whose time and file were cut off",
        ambiguous=True,
    ),
    _logger(
        "source-name",
        ("vllm", "server", "engine", "worker", "decode", "prefill", "backend"),
        (": ", " > ", " | "),
        r"(?:vllm|server|engine|worker|decode|prefill|backend)[\w.-]{0,60}+(?::| >| \|) (?=\S)",
        Trust.RAW,
        "wrappers that name the process",
        ambiguous=True,
    ),
)
"""What is taken off the front, tried in this order, until none fits or one is final."""
