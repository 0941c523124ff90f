"""A 50 Hz policy on a body at 1 kHz next to busy processes: periods of the motors that are lost, and those of a loop that computes nothing.

    cargo build --release -p tectum-control --example decimated_loop
    PYTHON_WITH_ONNX bench/policy_loop/decimated_loop.py --seconds 20 --rounds 3 --record FILE.json

Twelve joints are driven by position control in each millisecond; the policy is an MLP of 48-512-256-128-12 numbers (ELU, f32). Both loops take turns, each without and
with real-time priority (SCHED_FIFO), and wait for absolute deadlines. A period that begins after its end is lost.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from policy_loop import write_model

HERE = pathlib.Path(__file__).resolve().parent
JOINTS = 12
CONTRACT = """period = 0.02
[[observation]]
channels = ["joint_pos.*"]
history = 2
order = "oldest first"
fill = "first"
[[observation]]
channels = ["joint_vel.*"]
scale = 0.05
history = 2
order = "oldest first"
fill = "first"
[action]
channels = [%s]
scale = 0.25
[motors]
stiffness = 40.0
damping = 4.0
torque_limit = 30.0
""" % ", ".join(f'"j{joint}"' for joint in range(JOINTS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--burners", type=int, default=2, help="busy processes")
    parser.add_argument("--priority", type=int, default=50)
    parser.add_argument("--ours", default=HERE.parents[1] / "target/release/examples/decimated_loop")
    parser.add_argument("--record", type=pathlib.Path)
    args = parser.parse_args()
    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(args.burners)]
    results = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "policy.onnx")
            write_model(model)
            pathlib.Path(folder, "policy.toml").write_text(CONTRACT)
            for _ in range(args.rounds):
                for priority in ([], [args.priority]):
                    for name, words in {"policy": [model, JOINTS], "nothing": ["nothing", 1000]}.items():
                        command = [str(word) for word in [args.ours, *words, args.seconds, *priority]]
                        done = subprocess.run(command, capture_output=True, text=True)
                        side = name + (f", SCHED_FIFO {args.priority}" if priority else "")
                        if done.returncode:
                            print(f"{side}: {done.stderr.strip()}", file=sys.stderr)
                            continue
                        results.setdefault(side, []).append(json.loads(done.stdout))
    finally:
        for burner in burners:
            burner.kill()
    for side, rounds in results.items():
        lost, periods = (sum(entry[key] for entry in rounds) for key in ("lost", "periods"))
        late = {key: statistics.median(entry["late_ms"][key] for entry in rounds) for key in rounds[0]["late_ms"]}
        print(f"{side:28} {lost:>6} of {periods} periods lost, begun late (ms): {late}")
    if args.record:
        about = {"burners": args.burners, "cores": os.cpu_count(), "load_at_end": os.getloadavg(), "policy_hz": 50, "body_hz": 1000, "seconds": args.seconds}
        args.record.write_text(json.dumps(about | {"sides": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
