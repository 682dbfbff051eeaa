"""Classifies failing tests: which class of RED each is, and whether it is a legal one (matrix 5).

The innermost frame in the workspace decides. What the table does not call legal is not legal: a refused RED costs one
rewrite of a test, an accepted one that says nothing costs the evidence.
"""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import Final, assert_never

from pipeline.judge.evidence.observation import CollectionError, Ended, Fault, Frame, TestRecord
from pipeline.judge.evidence.red_classes import MISSING_FILE, PASSED, Classified, Context, RedClass, Symbol, Symptom

_MESSAGE_LINES: Final = 6
_MESSAGE_LIMIT: Final = 300
_NO_FRAMES: Final = (
    "; no line of the project was seen with it: where production raises it, call that inside an assertion which says "
    "what is expected"
)
LIMIT_REACHED: Final = "TestLimitReached"  # what the recorder raises in a test of Python; its message names the limit
_CALL_FAULT: Final = re.compile(
    r"^(?P<name>[\w.<>]+?)(\.__init__|\.__new__)?\(\) "
    r"(got (an )?unexpected keyword|got multiple values|got some positional|takes |missing \d+ required)"
    # a field that a declared model does not have yet: SQLAlchemy, pydantic
    r"|^'\w+' is an invalid keyword argument for (?P<model>\w+)$|^\d+ validation errors? for (?P<form>\w+)$",
    re.MULTILINE,
)


def classify(record: TestRecord, context: Context) -> Classified:
    """Return the RED class of one collected test."""
    found = _classified(record, context)
    if (
        context.announced(record)
        and found.cls not in {*PASSED, RedClass.ENV_BROKEN}
        and (found.legal or record.outcome is Ended.FAILED)
    ):
        said = f"was announced as a guard, and it fails: {found.message}; mend it, or withdraw the mark"
        return _no(RedClass.GUARD_FAILS, said)
    needs_stub = found.legal and found.cls in {RedClass.ASSERTION_MISMATCH, RedClass.MISSING_BEHAVIOR}
    if context.stubbed and needs_stub and not reaches_symbol(record, context):
        return _no(RedClass.STRUCTURAL, "fails without reaching a stub of the task; call one and look at what it does")
    return found


def fails_by_itself(record: TestRecord, context: Context) -> bool:
    """Return whether a test fails by its own judgement: it looked at what the code did, and did not find it right.

    That is a legal RED whose decisive frame is the test's, so no error that is thrown out of the code. Whatever a test
    looks at, that one ends it when the code is broken enough.
    """
    if record.outcome is not Ended.FAILED or record.fault is None:
        return False
    frame = record.fault.last_own_frame
    found = classify(record, context)
    own = frame is not None and not context.is_production(frame) and _let_through(record.fault, context) is None
    return own and found.legal and found.cls is RedClass.ASSERTION_MISMATCH


def reaches_symbol(record: TestRecord, context: Context) -> bool:
    """Return whether a test entered one of the task's symbols, or started a process that may have."""
    frames = record.fault.frames if record.fault is not None else ()
    reach = record.reach.functions if record.reach is not None else ()
    entered = [(path, function) for path, _, function in (entry.partition("::") for entry in reach)]
    entered += [(frame.path, frame.function) for frame in frames if frame.path]
    if any(_is_symbol(path, function, symbol) for path, function in entered for symbol in context.symbols):
        return True
    return record.reach is not None and "process" in record.reach.doors


def _classified(record: TestRecord, context: Context) -> Classified:
    match record.outcome:
        case None:
            return _no(RedClass.NOT_RUN, f"was collected but not run{f': {record.reason}' if record.reason else ''}")
        case Ended.PASSED | Ended.XPASSED:
            if context.announced(record):
                return Classified(RedClass.GUARD, legal=True, message="passes, as announced")
            return _no(
                RedClass.PASSED_UNMARKED,
                "passes already; a RED test must fail before the change (one that is to pass before, too, is a GUARD "
                "in `tests`)",
            )
        case Ended.SKIPPED:
            return _no(RedClass.SKIPPED, f"is skipped ({record.reason}); a skipped test shows nothing")
        case Ended.XFAILED | Ended.STRICT_XPASS:
            return _no(RedClass.XFAILED, "is marked xfail; a RED test must fail plainly")
        case Ended.TIMED_OUT:
            told = record.fault is not None and record.fault.raised.kind.endswith(LIMIT_REACHED)
            why = f" ({record.fault.raised.message})" if record.fault is not None and told else ""
            return _symptomatic(RedClass.TEST_TIMEOUT, f"does not end in time{why}", context, "hang")
        case Ended.CRASHED:
            return _symptomatic(RedClass.CRASHED, "ends the whole test process", context, "crash")
        case Ended.FAILED:
            if record.fault is None:
                return _no(RedClass.TEST_BROKEN, f"fails without an exception: {record.reason}")
            return _failed(record, record.fault, context)
        case _:
            assert_never(record.outcome)


def classify_collection(error: CollectionError, context: Context) -> Classified:
    """Return the class of a file that cannot be collected: legal only for a task symbol in a NEW test file."""
    fault = error.fault
    if fault.raised.kind == MISSING_FILE:  # legal if a task brings that file
        return _missing_file(error, context)
    if (broken_environment := _third_party(fault, context)) is not None:
        return broken_environment
    frame = fault.last_own_frame
    in_test = frame is not None and not context.is_production(frame)
    missing = fault.missing
    own = missing is not None and (missing.first_party or fault.raised.is_a("ImportError"))
    wanted = own and in_test and not fault.raised.is_a("NameError")
    if missing is None or not wanted or not context.introduces(missing.name, missing.owner):
        return _no(RedClass.TEST_BROKEN, f"cannot be collected: {_said(fault)}{_at(frame)}")
    if context.stubbed:
        return _no(RedClass.TEST_BROKEN, f"looks for {missing.name}, which is not among the stubs{_at(frame)}")
    if context.scaffolds:
        return _no(
            RedClass.TEST_BROKEN,
            f"looks for {missing.name}, which does not exist, and the task does not list it as new. New symbols are "
            f"scaffolded before their tests. If the task has to list it, answer BLOCKED and say so{_at(frame)}",
        )
    if error.path not in context.existing and context.layout.is_test(error.path):
        said = f"{missing.name} does not exist yet; the file cannot be imported"
        return Classified(RedClass.MISSING_BEHAVIOR, legal=True, message=said)
    return _no(
        RedClass.IMPORT_HIDES_TESTS,
        f"imports {missing.name}, which does not exist yet, and so hides the file's other tests. Import the module "
        "instead, or import inside the new test, or use a new file",
    )


def _missing_file(error: CollectionError, context: Context) -> Classified:
    if error.path in context.task_files and error.path not in context.existing and not context.stubbed:
        return Classified(RedClass.MISSING_BEHAVIOR, legal=True, message=f"{error.path} does not exist yet")
    return _no(RedClass.TEST_BROKEN, f"{_said(error.fault)}; declare it where its tests are to be found")


def _failed(record: TestRecord, fault: Fault, context: Context) -> Classified:
    if (broken_environment := _third_party(fault, context)) is not None:
        return broken_environment
    if fault.missing_fixture:
        return _no(RedClass.TEST_BROKEN, f"asks for the fixture {fault.missing_fixture!r}, which nobody defines")
    frame = fault.last_own_frame
    if frame is None and fault.frames and fault.raised.is_a("AssertionError") and _reached(record, context):
        return _assertion(record, fault, context)  # a plugin raises what the test's checks have gathered
    if frame is None:
        return _no(
            RedClass.TEST_BROKEN, f"fails outside the project: {_said(fault)}{'' if fault.frames else _NO_FRAMES}"
        )
    if fault.raised.is_a("SyntaxError"):
        return _no(RedClass.TEST_BROKEN, f"{_said(fault)}{_at(frame)}")
    if context.is_production(frame):
        return _in_production(fault, frame, context)
    return _in_test(record, fault, frame, context)


def _in_production(fault: Fault, frame: Frame, context: Context) -> Classified:
    if fault.raised.is_a("NotImplementedError") and any(
        _is_symbol(frame.path, frame.function, symbol) for symbol in context.symbols
    ):
        return Classified(RedClass.MISSING_BEHAVIOR, legal=True, message=f"{frame.function} is not implemented yet")
    if fault.missing is not None and fault.raised.is_a("ImportError") and not _is_kept_away(fault):
        if context.introduces(fault.missing.name, fault.missing.owner):
            return Classified(RedClass.MISSING_BEHAVIOR, legal=True, message=f"{fault.missing.name} does not exist yet")
        return _no(RedClass.TEST_BROKEN, f"the code under test cannot be imported: {_said(fault)}{_at(frame)}")
    if frame.path not in context.existing:
        return _no(RedClass.STRUCTURAL, f"fails in code that did not exist at the start: {_said(fault)}{_at(frame)}")
    return Classified(RedClass.ASSERTION_MISMATCH, legal=True, message=f"{_said(fault)}{_at(frame)}")


def _in_test(record: TestRecord, fault: Fault, frame: Frame, context: Context) -> Classified:
    if fault.expectation or fault.raised.is_a("AssertionError", "Failed"):
        return _assertion(record, fault, context)
    missing = fault.missing
    if missing is not None and not fault.raised.is_a("NameError") and context.introduces(missing.name, missing.owner):
        if missing.first_party or fault.raised.is_a("ImportError"):
            return Classified(RedClass.MISSING_BEHAVIOR, legal=True, message=f"{missing.name} does not exist yet")
        return _no(RedClass.TEST_BROKEN, f"{_said(fault)}: that object is not the project's own")
    if any(context.names_method(one.name, one.owner) for one in fault.special):
        return Classified(RedClass.MISSING_BEHAVIOR, legal=True, message=_said(fault))
    call = _CALL_FAULT.match(fault.raised.message) if fault.raised.is_a("TypeError", "ValidationError") else None
    called = call["name"] or call["model"] or call["form"] if call is not None else ""
    if called and context.introduces(called, called.rpartition(".")[0]):
        return Classified(RedClass.MISSING_BEHAVIOR, legal=True, message=_said(fault))
    if called:
        return _no(
            RedClass.TEST_BROKEN,
            f"{_said(fault)}{_at(frame)}: the task's symbols do not list {called}. Mend the call. If this "
            "task is to change its arguments, answer BLOCKED and say that the split has to list it",
        )
    if (passed_on := _let_through(fault, context)) is not None:
        said = f"{_said(fault)}{_at(frame)}, which {passed_on.path}:{passed_on.line} lets through"
        return Classified(RedClass.ASSERTION_MISMATCH, legal=True, message=said)
    return _no(
        RedClass.TEST_BROKEN,
        f"{_said(fault)}{_at(frame)}, in the test itself; fail by an assertion about the new behaviour",
    )


def _let_through(fault: Fault, context: Context) -> Frame | None:
    """Return the line of code that was there before which called what raises in the tests, a double or a callback.

    None where there is none, or where the exception is an assertion or a name that does not exist: those are the test's
    own. Whatever else it raises, only production can catch it: that it is no slip of the test, GREEN will show.
    """
    if fault.expectation or fault.raised.is_a("AssertionError", "Failed", "NameError"):
        return None
    own = (frame for frame in fault.frames if frame.path)
    from_test = dropwhile(context.is_production, own)  # what decorates a test calls it: a slip in it is the test's
    called = [frame for frame in from_test if context.is_production(frame) and frame.path in context.existing]
    return called[-1] if called else None


def _assertion(record: TestRecord, fault: Fault, context: Context) -> Classified:
    reached = _reached(record, context)
    if _finds_what_goes(record, context):
        return Classified(RedClass.ASSERTION_MISMATCH, legal=True, message=_said(fault))
    if reached is False or (fault.bare and not fault.expectation and reached is not True):
        return _no(RedClass.STRUCTURAL, f"fails without reaching the code under test: {_said(fault)}")
    return Classified(RedClass.ASSERTION_MISMATCH, legal=True, message=_said(fault))


def _finds_what_goes(record: TestRecord, context: Context) -> bool:
    """Return whether a test looks for a file that the task takes away, by import or by path.

    However it says that the file is there, it is: whether the removal is what it waits for, GREEN will show.
    """
    reach = record.reach
    return reach is not None and not context.removed.isdisjoint((*reach.references, *reach.named))


def _reached(record: TestRecord, context: Context) -> bool | None:
    """Return whether the test reached production code: True, False (surely not), or None (unknown).

    A name that is only mentioned is not known to have been looked at, so it does not save a bare failure.
    """
    if record.reach is None:
        return None
    entered = (entry.partition("::")[0] for entry in record.reach.functions)
    touched = (*entered, *record.reach.doors)
    if any(path == "process" or not context.layout.is_test_side(path) for path in touched):
        return True
    return None if any(not context.layout.is_test_side(path) for path in record.reach.references) else False


def _third_party(fault: Fault, context: Context) -> Classified | None:
    """Return ENV_BROKEN for a missing module that neither the project nor the task has; else None."""
    missing = fault.missing
    if missing is None or missing.first_party or not fault.raised.is_a("ImportError") or _is_kept_away(fault):
        return None
    if context.introduces(missing.name, missing.owner):
        return None
    what = f"{missing.name} of {missing.owner}" if missing.owner else missing.name
    return _no(RedClass.ENV_BROKEN, f"{what} is not installed in the test environment")


def _is_kept_away(fault: Fault) -> bool:
    """Return whether a test keeps a module from being imported, to look at what the code does without it."""
    return fault.raised.message.endswith("None in sys.modules")  # in Python's words


def _symptomatic(cls: RedClass, said: str, context: Context, symptom: Symptom) -> Classified:
    legal = context.symptom == symptom
    hint = "" if legal else f"; only a task with the symptom {symptom!r} may be shown this way"
    if cls is RedClass.TEST_TIMEOUT and not legal:
        hint += ". If it is only slow, let it try less; or the project allows more by `test_timeout_s` in [toolchains]"
    return Classified(cls, legal=legal, message=said + hint)


def _is_symbol(path: str, function: str, symbol: Symbol) -> bool:
    """Return whether a function is the symbol itself, or a method of it if it is a class."""
    if symbol.path and symbol.path != path:
        return False
    return f".{symbol.name}.".replace("::", ".") in f".{function}.".replace("::", ".")


def _said(fault: Fault) -> str:
    """Return the exception's name and message on one line; the expectation often stands below the first one."""
    lines = [line.strip() for line in fault.raised.message.splitlines() if line.strip()]
    name = fault.raised.kind.rpartition(".")[2]
    if not lines:
        return name
    said = " | ".join(lines[:_MESSAGE_LINES])
    return (said if said.startswith(f"{name}: ") else f"{name}: {said}")[:_MESSAGE_LIMIT]


def _at(frame: Frame | None) -> str:
    return f" ({frame.path}:{frame.line})" if frame is not None else ""


def _no(cls: RedClass, message: str) -> Classified:
    return Classified(cls, legal=False, message=message)
