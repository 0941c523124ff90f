#!/usr/bin/env bash
# Runs conformance, verify, the pendulum and every bench suite on one NVIDIA GPU, in under eight minutes, and writes one
# JSON record: device, driver, clocks, commit, each result, and PyTorch and CuPy beside them where they are installed.
# Without a GPU every GPU row says why it was skipped.
# usage: run.sh [RECORD.json] [DEVICE]
set -uo pipefail
kit="$(cd "$(dirname "$0")" && pwd)"
record="${1:-$kit/record.json}"
device="${2:-cuda:0}"
parts="$(mktemp -d)"
trap 'rm -rf "$parts"' EXIT
export NODEVICE_SELECT=1
failed=0

# A line of text as a JSON string.
json_string() { printf '"%s"' "$(tr '\n\t' '  ' | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')"; }

# step NAME SECONDS COMMAND...: the last line of standard output is the step's JSON; otherwise what went wrong.
step() {
    local name="$1" limit="$2" begin end rc
    shift 2
    begin=$(date +%s.%N)
    timeout "$limit" "$@" >"$parts/$name.out" 2>"$parts/$name.err"
    rc=$?
    end=$(date +%s.%N)
    {
        printf '{"exit": %d, "seconds": %.1f, ' "$rc" "$(echo "$end $begin" | awk '{print $1 - $2}')"
        if tail -n 1 "$parts/$name.out" | grep -q '^[{[]'; then
            printf '"result": %s}' "$(tail -n 1 "$parts/$name.out")"
        else
            printf '"output": %s}' "$(tail -c 3000 "$parts/$name.out" "$parts/$name.err" 2>/dev/null | json_string)"
        fi
    } >"$parts/$name.json"
    echo "$name: exit $rc"
    [ "$rc" -eq 0 ] || failed=1
}

skip() { printf '{"skipped": %s}' "$(printf '%s' "$2" | json_string)" >"$parts/$1.json"; echo "$1: skipped: $2"; }

# conformance with its own file of results
conformance() { "$kit/conformance" --only cuda --json "$parts/conformance.full" && tr '\n' ' ' <"$parts/conformance.full" && echo; }

smi() {
    local fields=name,uuid,driver_version,pstate,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,power.limit,temperature.gpu,ecc.mode.current
    command -v nvidia-smi >/dev/null || { printf 'null'; return; }
    nvidia-smi -i "${device#cuda:}" --query-gpu="$fields" --format=csv,noheader,nounits 2>/dev/null |
        awk -F', ' -v names="$fields" 'NR == 1 { n = split(names, key, ","); printf "{"; for (i = 1; i <= n; i++) printf "%s\"%s\": \"%s\"", (i > 1 ? ", " : ""), key[i], $i; printf "}" } END { if (!NR) printf "null" }'
}

step devices 30 "$kit/tectum" devices --json
before="$(smi)"
steps="conformance verify pendulum bench_core"
if grep -Eq "\"id\": ?\"$device\"" "$parts/devices.out"; then
    export -f conformance
    export kit parts
    step conformance 90 bash -c conformance
    step verify 90 "$kit/tectum" verify --device "$device" --json
    step pendulum 60 "$kit/tectum" run pendulum --seconds 30 --seed 1 --device "$device" --runs "$parts/runs" --json
    step bench_core 150 "$kit/tectum" bench core programs --device "$device" --peers none --record "$(dirname "$record")" --json
else
    reason="$("$kit/tectum" verify --device "$device" 2>&1 >/dev/null | grep -v XDG_RUNTIME_DIR | head -n 1)"
    for name in $steps; do skip "$name" "$reason"; done
fi
if command -v python3 >/dev/null; then step peers 60 python3 "$kit/peers.py"; else skip peers "python3 is not installed"; fi
after="$(smi)"

{
    printf '{\n "kit": 1,\n "date": "%s",\n "commit": "%s",\n "device_id": "%s",\n' "$(date -u +%FT%TZ)" "$(cat "$kit/COMMIT")" "$device"
    printf ' "clocks_before": %s,\n "clocks_after": %s' "${before:-null}" "${after:-null}"
    for name in devices $steps peers; do printf ',\n "%s": %s' "$name" "$(cat "$parts/$name.json")"; done
    printf '\n}\n'
} >"$record.partial" && mv "$record.partial" "$record"
echo "record: $record"
exit "$failed"
