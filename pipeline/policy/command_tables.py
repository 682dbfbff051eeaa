"""Which programs an agent's tool may run, and with which words: closed tables (ADR-R38).

An option that is not here is refused, so a new version of a tool cannot widen anything. What is left out on purpose is
named as `refused`, to tell why. Nothing here is the wall: tests run arbitrary code, and box and gate hold that. The
tables give an early answer that a model can act on, and keep a slip from becoming a violation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.policy.command_runners import RUNNERS
from pipeline.policy.command_words import AS_NUMBER, Danger, Operands, Tool, flags, optional, refused, value

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER: Final = r"\d{1,6}"
_ANYTHING: Final = r"[^-@].*"
_GLOB: Final = r"[^-@].*"
_WHEN: Final = r"auto|always|never|yes|no"
_RG: Final = Tool(
    options={
        **flags("-n", "--line-number", "-N", "--no-line-number", "-i", "--ignore-case", "-s", "--case-sensitive"),
        **flags("-S", "--smart-case", "-w", "--word-regexp", "-x", "--line-regexp", "-F", "--fixed-strings", "-P"),
        **flags("-v", "--invert-match", "-l", "--files-with-matches", "--files-without-match", "-c", "--count"),
        **flags("-o", "--only-matching", "-U", "--multiline", "--multiline-dotall", "-H", "-I", "--no-filename"),
        **flags("--files", "--hidden", "--no-ignore", "--heading", "--no-heading", "--column", "--vimgrep"),
        **flags("--trim", "--stats", "-q", "--quiet", "--json", "--no-config", "-a", "--text", "--count-matches"),
        **value(_ANYTHING, "-e", "--regexp"),
        **value(_NUMBER, "-A", "-B", "-C", "-m", "-d", joined=True),
        **value(_NUMBER, "--after-context", "--before-context", "--context", "--max-count", "--max-depth"),
        **value(_GLOB, "-g", "--glob", "--iglob"),
        **value(r"[a-z0-9]+", "-t", "--type", "-T", "--type-not", joined=True),
        **value(_WHEN, "--color"),
        **value(r"path|modified|none", "--sort"),
    },
    operands=Operands.PATTERN_THEN_PATHS,
    pattern_options=frozenset({"-e", "--regexp", "--files"}),
    refused={
        **refused(Danger.EXECUTES, "--pre", "--pre-glob", "-z", "--search-zip", "--hostname-bin", "--hyperlink-format"),
        **refused(Danger.ELSEWHERE, "-f", "--file", "--ignore-file", "-L", "--follow"),
    },
)
_GREP: Final = Tool(
    options={
        **flags("-n", "--line-number", "-i", "--ignore-case", "-v", "--invert-match", "-w", "--word-regexp", "-x"),
        **flags("-c", "--count", "-l", "--files-with-matches", "-L", "--files-without-match", "-o", "-q", "--quiet"),
        **flags("-E", "--extended-regexp", "-F", "--fixed-strings", "-G", "-P", "--perl-regexp", "-r", "--recursive"),
        **flags("-h", "--no-filename", "-H", "--with-filename", "-s", "--no-messages", "-a", "--text", "-I", "-b"),
        **flags("--only-matching", "--line-regexp", AS_NUMBER),
        **value(_ANYTHING, "-e", "--regexp"),
        **value(_NUMBER, "-A", "-B", "-C", "-m", joined=True),
        **value(_NUMBER, "--after-context", "--before-context", "--context", "--max-count"),
        **value(_GLOB, "--include", "--exclude", "--exclude-dir"),
        **optional(_WHEN, "--color", "--colour"),
    },
    operands=Operands.PATTERN_THEN_PATHS,
    pattern_options=frozenset({"-e", "--regexp"}),
    refused=refused(
        Danger.ELSEWHERE, "-f", "--file", "--exclude-from", "-R", "--dereference-recursive", "-D", "--devices"
    ),
)
_FIND: Final = Tool(
    options={
        **flags("-print", "-empty", "-not", "-o", "-or", "-a", "-and", "-prune"),
        **value(_GLOB, "-name", "-iname", "-path", "-ipath"),
        **value(r"[fdl]", "-type"),
        **value(_NUMBER, "-maxdepth", "-mindepth"),
    },
    bundles=False,
    refused={
        **refused(Danger.EXECUTES, "-exec", "-execdir", "-ok", "-okdir"),
        **refused(Danger.WRITES, "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"),
        **refused(Danger.ELSEWHERE, "-L", "-follow", "-files0-from", "-H"),
    },
)
_ENDS: Final = Tool(
    options={
        **flags("-q", "--quiet", "-v", "--verbose", AS_NUMBER),
        **value(r"\+?\d{1,9}", "-n", "--lines", "-c", "--bytes", joined=True),
    }
)
_RUFF: Final = {
    **flags("-q", "--quiet", "-v", "--verbose", "--diff", "--no-cache", "--preview", "-h", "--help"),
    **value(r"concise|full|json|json-lines|grouped|github|gitlab|pylint", "--output-format"),
}
_RUFF_REFUSED: Final = {
    **refused(Danger.CONFIG, "--config", "--isolated", "--extension", "--target-version"),
    **refused(Danger.WRITES, "--fix", "--unsafe-fixes", "-o", "--output-file", "--add-noqa", "--cache-dir", "--watch"),
}

TOOLS: Final[Mapping[tuple[str, ...], Tool]] = {
    **RUNNERS,
    ("ruff", "check"): Tool(
        {
            **_RUFF,
            **flags("--no-fix", "--statistics", "--exit-zero"),
            **value(r"[A-Z0-9,]+", "--select", "--ignore", "--extend-select"),
        },
        refused=_RUFF_REFUSED,
    ),
    ("ruff", "format"): Tool(
        {**_RUFF, **flags("--check")}, required=frozenset({"--check", "--diff"}), refused=_RUFF_REFUSED
    ),
    ("mypy",): Tool(
        {
            **flags("--strict", "--pretty", "--no-incremental", "--show-error-codes", "--no-error-summary"),
            **flags("--ignore-missing-imports", "--show-column-numbers", "-h", "--help", "-V", "--version"),
        },
        refused={
            **refused(Danger.CODE, "-c", "-m", "-p", "--package", "--module", "--pdb"),
            **refused(Danger.CONFIG, "--config-file", "--shadow-file", "--custom-typeshed-dir", "--plugin"),
            **refused(Danger.EXECUTES, "--python-executable", "--install-types"),
            **refused(Danger.WRITES, "--cache-dir", "--junit-xml", "--html-report", "--txt-report", "--xml-report"),
        },
    ),
    ("pyright",): Tool(
        {
            **flags("--outputjson", "--stats", "--warnings", "--verbose", "-h", "--help", "--version"),
            **value(r"error|warning", "--level"),
        },
        refused={
            **refused(Danger.CONFIG, "-p", "--project", "-v", "--venvpath", "-t", "--typeshedpath"),
            **refused(Danger.EXECUTES, "--pythonpath"),
            **refused(Danger.WRITES, "--createstub", "--writebaseline", "-w", "--watch"),
        },
    ),
    ("rg",): _RG,
    ("grep",): _GREP,
    ("find",): _FIND,
    ("head",): _ENDS,
    ("tail",): _ENDS,
    ("cat",): Tool(flags("-n", "--number", "-b", "-s", "-A", "-E", "-T", "-v")),
    ("ls",): Tool(
        {
            **flags("-l", "-a", "-A", "-1", "-R", "-h", "-t", "-r", "-S", "-d", "-F", "-p", "-i", "-s"),
            **flags("--all", "--almost-all", "--recursive", "--human-readable", "--reverse"),
            **optional(_WHEN, "--color"),
        }
    ),
    ("wc",): Tool(
        flags("-l", "--lines", "-w", "--words", "-c", "--bytes", "-m", "--chars", "-L"),
        refused=refused(Danger.ELSEWHERE, "--files0-from"),
    ),
    ("diff",): Tool(
        {
            **flags("-u", "-r", "--recursive", "-N", "--new-file", "-q", "--brief", "-w", "-b", "-B", "-i", "-a", "-s"),
            **value(_NUMBER, "-U", "-C", joined=True),
            **optional(_NUMBER, "--unified", "--context"),
            **optional(_WHEN, "--color"),
        },
        refused={
            **refused(Danger.ELSEWHERE, "--to-file", "--from-file", "-X", "--exclude-from"),
            **refused(Danger.EXECUTES, "-l", "--paginate"),
        },
    ),
}
"""By the words that a command begins with, in this order and with nothing between them."""
WRAPPERS: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    ("uv", "run"): frozenset({"--frozen", "--locked", "--offline", "--no-sync"}),
    ("nix", "develop", "-c"): frozenset(),
    ("nix", "develop", "--command"): frozenset(),
}
"""What runs another command of the tables: the words in front, and the flags that may stand between."""

HINTS: Final[Mapping[str, str]] = {
    "git": "what you change is seen by the program itself, and nothing is committed here; read the files instead",
    **dict.fromkeys(
        ("sh", "bash", "dash", "zsh", "env", "xargs", "eval", "exec", "command", "sudo", "time", "timeout", "nohup"),
        "there is no shell and nothing that starts other programs. Give the program itself",
    ),
    **dict.fromkeys(("python", "python3", "node", "perl", "ruby"), "write a test and run it with the tool `run_tests`"),
    **dict.fromkeys(
        ("sed", "awk", "tee", "touch", "cp", "mv", "rm", "mkdir", "ln", "chmod", "dd", "truncate", "install", "patch"),
        "read and change files with the tools `read`, `write` and `delete`",
    ),
    **dict.fromkeys(
        ("pip", "pip3", "uv", "npm", "npx", "pnpm", "yarn", "poetry", "curl", "wget", "ssh"),
        "there is no network: nothing is installed or fetched. Ask for what is missing in your report",
    ),
    **dict.fromkeys(("cd", "pushd", "pwd"), "every command runs at the top of the workspace; name paths from there"),
    **dict.fromkeys(("make", "just", "tox", "nox"), "run the tests with the tool `run_tests`"),
}
