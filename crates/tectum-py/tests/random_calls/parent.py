"""The parent: starts children and judges how they end."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tectum as tt
from child import CALLS_OF_SEQUENCE
from sequence import MEMBERS, REACHABLE
from texts import RECIPES

DEFAULT_CALLS = 2_000
CALLS_OF_CHILD = 1_000
# Seconds after which a call is interrupted: about a hundred times what a call with small arguments takes.
INTERRUPT_S = 0.25
# Seconds without progress that are a hang, if the machine starts a child in the nominal time.
HANG_S = 30.0
NOMINAL_START_S = 1.5
# Calls that look for growth in one class: fewer have too few repetitions to see it.
CALLS_OF_REPETITION = 400
# Runs that shorten the script of one finding.
SHORTENING_RUNS = 30
# Calls of a finding that are printed: the last ones.
PRINTED_CALLS = 60
# Seconds after which the script of a finding is not shortened further.
SHORTENING_S = 60.0
# Findings after which no more children are started.
MAX_FINDINGS = 40


class Finding:
    def __init__(self, kind, text, seed, calls, errors=""):
        self.kind, self.text, self.seed, self.calls, self.errors = kind, text, seed, calls, errors

    def __str__(self):
        left_out = len(self.calls) - PRINTED_CALLS
        lines = [f"{self.kind}: {self.text} (sequence {self.seed})"]
        lines += [f"    # {left_out} calls before"] if left_out > 0 else []
        lines += [f"    {call}" for call in self.calls[-PRINTED_CALLS:]]
        return "\n".join(lines + [f"    # {line}" for line in self.errors.splitlines()[-25:]])

    @property
    def place(self):
        """What makes two findings the same: the kind, and the member that was called last."""
        last = self.calls[-1] if self.calls else ""
        return self.kind, re.sub(r"\(.*", "", re.sub(r"^v\d+ := ", "", last)).split(".")[-1]


class Setup:
    """The files that calls read, and how long calls and children may take on this machine."""

    def __init__(self, folder):
        self.folder, self.interrupt_s, self.hang_s = folder, INTERRUPT_S, HANG_S
        for name in ("sample-genome", "sample-decoder", "sample-encoder", "cart-pole-policy"):
            tt.sample(name, folder / (name + ".json" if name == "sample-genome" else name))
        run = tt.run("cart_pole", brain="lqr", clock="sim", seconds=0.2, folder=folder / "runs")
        assert run.folder == folder / "runs" / "1", run.folder
        started = time.monotonic()
        Child(self, seed="start", calls=1).wait().clean()
        slowness = max(1.0, (time.monotonic() - started) / NOMINAL_START_S)
        self.interrupt_s, self.hang_s = INTERRUPT_S * slowness, HANG_S * slowness


class Child:
    """A child process in a folder of its own."""

    def __init__(self, setup, **job):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tectum-random-calls-"))
        shutil.copytree(setup.folder, self.folder, dirs_exist_ok=True)
        self.log, self.errors = self.folder / "calls.log", self.folder / "errors.log"
        self.job, self.hang_s = job, setup.hang_s
        self.size, self.changed, self.hangs = 0, time.monotonic(), False
        text = json.dumps({"interrupt_s": setup.interrupt_s} | job | {"log": str(self.log)})
        command = [sys.executable, str(pathlib.Path(__file__).resolve().parent), "--child", text]
        environment = os.environ | {"RUST_BACKTRACE": "0", "MPLBACKEND": "agg", "XDG_CACHE_HOME": str(setup.folder / "cache")}
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=errors, stderr=errors, stdin=subprocess.DEVNULL)

    def has_ended(self):
        if self.process.poll() is not None:
            return True
        size = self.log.stat().st_size if self.log.exists() else 0
        if size != self.size:
            self.size, self.changed = size, time.monotonic()
        elif time.monotonic() - self.changed > self.hang_s:
            self.hangs = True
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(1.0)
            self.process.kill()
            self.process.wait()
            return True
        return False

    def wait(self):
        while not self.has_ended():
            time.sleep(0.02)
        return self

    def findings(self):
        """What happened that must not, and the counts of the whole sequences."""
        lines = self.log.read_text(errors="backslashreplace").splitlines() if self.log.exists() else []
        errors = self.errors.read_text(errors="backslashreplace")
        found, seed, calls, every, summary = [], str(self.job.get("seed", "")), [], [], {}
        for line in lines:
            if line.startswith("%% "):
                summary = json.loads(line[3:])
            elif line == "== end":
                seed, calls = "the end of the process", every
            elif line.startswith("== "):
                seed, calls = line[3:], []
            elif line.startswith("## "):
                reported = json.loads(line[3:])
                found.append(Finding(reported["kind"], reported["text"], seed, reported.get("calls", list(calls))))
            else:
                calls.append(line)
                every.append(line)
        code = self.process.returncode
        if self.hangs:
            found.append(Finding("hang", f"no progress in {self.hang_s:.0f} s", seed, calls, errors))
        elif code < 0:
            found.append(Finding("signal", signal.Signals(-code).name, seed, calls, errors))
        elif code != 0:
            found.append(Finding("exit", f"code {code}", seed, calls, errors))
        panics = [line for line in errors.splitlines() if "panicked at" in line]
        if panics and not found:
            found.append(Finding("panic", panics[0], seed, calls, errors))
        return found, summary

    def clean(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def shortened(finding, setup):
    """The finding with as few calls as still lead to it."""

    def repeats(calls):
        found = made_again(calls, setup)
        return any(one.kind == finding.kind for one in found)

    if finding.kind == "growth":
        return finding
    calls, runs, end = finding.calls, 1, time.monotonic() + SHORTENING_S
    if not repeats(calls):
        finding.text += "; not repeated by these calls alone"
        return finding
    size = len(calls) // 2
    while size >= 1:
        start = 0
        while start < len(calls) - 1 and runs < SHORTENING_RUNS and time.monotonic() < end:
            fewer = calls[:start] + calls[min(start + size, len(calls) - 1) :]
            runs += 1
            if repeats(fewer):
                calls = fewer
            else:
                start += size
        size //= 2
    finding.calls = calls
    return finding


def made_again(calls, setup):
    """What happens when only these calls are made. None is interrupted early because the machine is busy."""
    script = setup.folder / "script.txt"
    script.write_text("\n".join(calls))
    ended = Child(setup, script=str(script), interrupt_s=4 * setup.interrupt_s).wait()
    found, _ = ended.findings()
    ended.clean()
    return found


def run_script(file):
    """Makes the calls of a file, and prints what happens; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="tectum-random-files-") as folder:
        found = made_again(file.read_text().splitlines(), Setup(pathlib.Path(folder)))
    print(*found, sep="\n")
    return 1 if found else 0


def main():
    calls = int(os.environ.get("TECTUM_PYTHON_CALLS", DEFAULT_CALLS))
    seed = int(os.environ.get("TECTUM_SEED", time.time_ns() // 1_000_000))
    print(f"== {calls} random calls from TECTUM_SEED={seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tectum-random-files-") as folder:
        setup = Setup(pathlib.Path(folder))
        repeated = calls // 5
        children = -(-(calls - repeated) // CALLS_OF_CHILD)
        jobs = [{"seed": f"{seed}-{number}", "calls": CALLS_OF_CHILD} for number in range(children)]
        focuses = [*RECIPES, *(member.name for member in MEMBERS if member.owner is None)]
        random.Random(seed).shuffle(focuses)
        focuses = focuses[: repeated // CALLS_OF_REPETITION]
        for focus in focuses:
            jobs.append({"seed": f"{seed}-{focus}", "focus": focus, "calls": repeated // len(focuses), "seconds": 60.0 + repeated / 100})
        findings, summaries = work(jobs, setup)
        unique = {}
        for finding in findings:
            unique.setdefault(finding.place, finding)
        for finding in unique.values():
            print(f"\n{shortened(finding, setup)}", flush=True)
    return judge(calls, unique, summaries)


def work(jobs, setup):
    """Runs a child for each job, as many at once as there are processors."""
    findings, summaries, running = [], [], []
    jobs = list(jobs)
    while jobs or running:
        if len(findings) >= MAX_FINDINGS:
            jobs.clear()
        while jobs and len(running) < (os.cpu_count() or 1):
            running.append(Child(setup, **jobs.pop(0)))
        for ended in [one for one in running if one.has_ended()]:
            running.remove(ended)
            found, summary = ended.findings()
            findings += found
            summaries += [summary] if summary else []
            missing = ended.job["calls"] - summary.get("calls", 0)
            if found and "focus" not in ended.job and missing > 0 and len(findings) < MAX_FINDINGS:
                jobs.append(ended.job | {"seed": f"{ended.job['seed']}+", "calls": missing - CALLS_OF_SEQUENCE})
            ended.clean()
        time.sleep(0.02)
    return findings, summaries


def judge(calls, findings, summaries):
    """Prints counts; returns the exit code."""
    outcomes, called, succeeded = {}, {}, {}
    for summary in summaries:
        for total, part in ((outcomes, "outcomes"), (called, "called"), (succeeded, "succeeded")):
            for name, count in summary[part].items():
                total[name] = total.get(name, 0) + count
    print(f"{sum(outcomes.values())} calls:", ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items(), key=lambda item: -item[1])))
    names = [str(member) for member in REACHABLE]
    never = [name for name in names if not called.get(name)]
    failed = [name for name in names if called.get(name) and not succeeded.get(name)]
    print(f"{len(names) - len(never)} of {len(names)} members called; without success: {', '.join(failed) or 'none'}")
    print(f"{len(findings)} findings")
    # With many calls, one that is never made is a mistake of this program.
    if calls >= 20_000 and never and not findings:
        print(f"never called: {', '.join(never)}")
        return 1
    return 1 if findings else 0
