"""A child process: makes calls, and writes each to a file before."""

import contextlib
import faulthandler
import gc
import json
import os
import pathlib
import re
import resource
import signal
import sys
import time

import arguments
from arguments import KEPT, Interrupted
from sequence import Sequence

CALLS_OF_SEQUENCE = 40
# What a child may map in addition to the interpreter and the package.
ADDRESS_SPACE = 3 * 2**30
# Growth of memory that is a finding: in the second half of the repetitions of the same calls.
GROWTH = 16 * 2**20
GROWTH_SAMPLES = 8


class Caller:
    """Evaluates the texts of calls, and records findings that do not end the process."""

    def __init__(self, log, interrupt_s, report):
        self.log, self.interrupt_s, self.report = log, interrupt_s, report
        self.calls = 0
        self.outcomes = {}

    def evaluate(self, text, names):
        """Evaluates one text; returns the result, or None, and whether it was interrupted."""
        os.write(self.log, f"{text}\n".encode("utf-8", "backslashreplace"))
        assigned = re.match(r"(v\d+) := ", text)
        name, expression = (assigned[1], text[assigned.end() :]) if assigned else ("", text)
        outcome, result = "ended", None
        try:
            signal.setitimer(signal.ITIMER_REAL, self.interrupt_s, self.interrupt_s)
            try:
                result = eval(expression, names)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupted:
            outcome = "interrupted"
        except BaseException as error:
            outcome = type(error).__name__
            if outcome in ("PanicException", "SystemError", "KeyboardInterrupt", "SystemExit"):
                self.report({"kind": outcome, "text": str(error)[:500]})
            del error
        self.calls += 1
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if name:
            names[name] = result
        names["last"] = result
        return result, outcome


def run(job):
    """Makes the sequences that the parent asks for, or the calls of a script."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    faulthandler.register(signal.SIGUSR1, all_threads=True)

    def report(finding):
        os.write(log, f"## {json.dumps(finding)}\n".encode())

    def interrupt(number, frame):
        raise Interrupted

    signal.signal(signal.SIGALRM, interrupt)
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE, mapped + ADDRESS_SPACE))
    # Slow to import: a call that draws would be interrupted each time.
    with contextlib.suppress(ImportError):
        import matplotlib.pyplot  # noqa: F401
    caller = Caller(log, job["interrupt_s"], report)
    called, succeeded = {}, {}

    def summarize():
        summary = {"calls": caller.calls, "outcomes": caller.outcomes, "called": called, "succeeded": succeeded}
        os.write(log, f"%% {json.dumps(summary)}\n".encode())

    if "script" in job:
        names = dict(vars(arguments))
        for text in pathlib.Path(job["script"]).read_text().splitlines():
            caller.evaluate(text, names)
    elif "focus" in job:
        repeat_calls(job, caller, report)
    else:
        number = 0
        while caller.calls < job["calls"]:
            seed = f"{job['seed']}-{number}"
            number += 1
            os.write(log, f"== {seed}\n".encode())
            sequence = Sequence(seed)
            for _ in range(CALLS_OF_SEQUENCE):
                member, text = sequence.next_call()
                result, outcome = caller.evaluate(text, sequence.names)
                if member is not None:
                    called[str(member)] = called.get(str(member), 0) + 1
                    succeeded[str(member)] = succeeded.get(str(member), 0) + (outcome == "ended")
                kept = sequence.keep(result) if member is not None else None
                if kept:
                    caller.evaluate(kept, sequence.names)
                del result
                if outcome != "ended" and " := " in text:
                    sequence.objects.pop(text.split(" := ")[0], None)
            del sequence
            clean()
            summarize()
    summarize()
    os.write(log, b"== end\n")


def clean():
    """Frees what calls left: matplotlib keeps each figure until it is closed."""
    KEPT.clear()
    with contextlib.suppress(KeyError):
        sys.modules["matplotlib.pyplot"].close("all")
    gc.collect()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def repeat_calls(job, caller, report):
    """Repeats the same calls of one class or function, and reports a memory that grows with each repetition."""
    sequence = Sequence(job["seed"], job["focus"])
    texts = []
    for _ in range(12):
        _, text = sequence.next_call()
        result, outcome = caller.evaluate(text, sequence.names)
        # A call that is interrupted ends at another place each time.
        if outcome != "interrupted" and (outcome == "ended" or " := " not in text):
            texts.append(text)
        del result
    del sequence
    gc.collect()
    started, samples = time.monotonic(), []
    repetitions = max(GROWTH_SAMPLES, job["calls"] // max(1, len(texts)))
    for repetition in range(repetitions):
        names = dict(vars(arguments))
        for text in texts:
            caller.evaluate(text, names)
        del names
        clean()
        if (repetition + 1) % (repetitions // GROWTH_SAMPLES) == 0:
            samples.append(resident())
        if time.monotonic() - started > job["seconds"]:
            return
    later = samples[len(samples) // 2 :]
    growth = later[-1] - later[0]
    if growth > GROWTH and all(after > before for before, after in zip(later, later[1:])):
        report({"kind": "growth", "text": f"{growth // 2**20} MiB in {repetitions // 2} repetitions", "calls": texts})
