#!/usr/bin/env python3
"""Runs the end-to-end cases against real Kubernetes programs. run.sh prepares what this needs.

usage: e2e.py --daemon FILE --config FILE [--only WORD] VERSION=FOLDER...

FOLDER holds etcd, kube-apiserver, kube-scheduler and kubectl of that VERSION. Each case is a function
`case_...(t)` in cases/*.py; --only takes the cases whose name contains WORD.
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from harness.audit import Audit
from harness.case import Case, Score
from harness.cluster import Cluster

HERE = pathlib.Path(__file__).resolve().parent


def find_cases(only):
    """[(name, function)] of cases/*.py, files by name, functions in the order of their file."""
    cases = []
    for path in sorted((HERE / "cases").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"case_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            if name.startswith("case_") and callable(value) and only in name:
                cases.append((name.removeprefix("case_"), value))
    return cases


def run_version(version, programs, options, cases, score):
    """One control plane, all cases on it. Logs are kept when something failed."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"kube-vgpu-e2e-{version}."))
    print(f"== Kubernetes {version}", flush=True)
    cluster = Cluster(version, programs, options.daemon, options.config, folder)
    failed_before = score.failed
    try:
        begin = time.monotonic()
        cluster.start()
        parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in cluster.timings)
        print(f"  control plane up in {time.monotonic() - begin:.1f} s ({parts})", flush=True)
        audit = Audit(cluster.admin).start()
        for name, function in cases:
            begin = time.monotonic()
            Case(name, cluster, audit, score).run(function)
            print(f"        {time.monotonic() - begin:.1f} s", flush=True)
        close(cluster, audit, score)
    except Exception as error:
        score.check(False, f"Kubernetes {version}: the harness gets through", f"{error}")
    finally:
        cluster.stop()
        keep = os.environ.get("KEEP") == "1"
        if score.failed > failed_before:
            show_logs(cluster)
            if not keep:
                keep_logs = tempfile.mkdtemp(prefix=f"kube-vgpu-e2e-{version}-logs.")
                shutil.copytree(cluster.logs, keep_logs, dirs_exist_ok=True)
                print(f"all logs: {keep_logs}", flush=True)
        if keep:
            print(f"kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder)


def show_logs(cluster):
    """What somebody who sees only this output needs: the daemon, and whoever ended early."""
    for process in cluster.processes:
        if process is cluster.daemon or process.ended_early:
            print(f"---- last lines of {process.name}\n{process.tail(40)}", flush=True)


def close(cluster, audit, score):
    """What must hold over the whole run, whatever the cases did."""
    print("whole run: what must hold over all cases", flush=True)
    audit.catch_up()
    audit.stop()
    score.check(not audit.violations, "no change of any pod broke a rule: no card over its "
                f"memory, cores or slots, binding and allocation always together "
                f"({audit.events} events, up to {audit.most_bound} pods at once)",
                "; ".join(audit.violations[:10]) + f" ({len(audit.violations)} in all)")
    complaints = cluster.complaints()
    served = sum("acknowledged" in entry for entry in cluster.journal_entries())
    score.check(not complaints, f"the nodes could serve every allocation ({served})",
                "; ".join(complaints[:10]) + f" ({len(complaints)} in all)")
    for process in cluster.processes:
        if not process.running():
            score.check(False, f"{process.name} is still running")
    resident = cluster.daemon.resident_mib()
    # A sanitizer reports what was leaked at the end, by the exit status.
    status = cluster.daemon.stop()
    score.check(status == 0, f"the daemon ends with status 0 when asked to ({resident} MiB "
                "resident)", status)


def main():
    """Exit status 0 only if there were checks and all of them passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--daemon", required=True, help="the vgpu-scheduler to test")
    parser.add_argument("--config", required=True, help="its device configuration")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("versions", nargs="+", metavar="VERSION=FOLDER")
    options = parser.parse_args()

    def interrupted(number, _frame):
        raise KeyboardInterrupt(f"signal {number}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)

    begin = time.monotonic()
    cases = find_cases(options.only)
    score = Score()
    try:
        for argument in options.versions:
            version, programs = argument.split("=", 1)
            run_version(version, programs, options, cases, score)
    except KeyboardInterrupt as interrupt:
        print(f"interrupted: {interrupt}", flush=True)
        return 130
    print(f"{score.passed} passed, {score.failed} failed "
          f"({time.monotonic() - begin:.0f} s)", flush=True)
    return 0 if score.passed and not score.failed else 1


if __name__ == "__main__":
    sys.exit(main())
