#!/usr/bin/env bash
# Runs conformance, verify, the pendulum and every bench suite on one NVIDIA GPU, each suite also on the CPU in the same run, and writes one
# JSON record: device, driver, clocks, commit, each result, how many times as fast the GPU is row by row, and PyTorch and CuPy where they are
# installed. Without a GPU every GPU row says why it was skipped.
#
# Every step has a time limit, and all together have KIT_SECONDS: a step that runs out of time is recorded as such, one for which no time is
# left is skipped, and the other results stay. The record is written again after every step.
#
# usage: run.sh [RECORD.json] [DEVICE]
#   KIT_SECONDS=570  seconds for everything; device machines are lent for 600
#   KIT_QUICK=1      tries out the script: one round of one small row a suite, 3 seconds a step; the record says so, its figures mean nothing
set -uo pipefail
kit="$(cd "$(dirname "$0")" && pwd)"
record="${1:-$kit/record.json}"
device="${2:-cuda:0}"
quick="${KIT_QUICK:-0}"
budget="${KIT_SECONDS:-570}"
parts="$(mktemp -d)"
trap 'rm -rf "$parts"' EXIT
trap 'write_record; exit 143' INT TERM
export NODEVICE_SELECT=1
failed=0
steps=()
before=null
after=null

# The suites: seconds on the GPU, seconds on the CPU, rounds, rows (all if none), the row of a quick run.
suites() {
    cat <<'END'
core 40 45 3 - core.relu.
convolution 12 15 3 - convolution.conv2d.64x9x9x64x3x1x0x1
programs 10 12 3 - programs.dispatch.
spiking 35 40 3 n10k_,n100k_,n500k_,n1m_s100,genome spiking.burst.n10k_
field 30 35 3 - field.noise.n65536
control 12 15 3 - control.plant.1024x30
infer 25 35 1 - infer.minilm.1x8
policy 8 12 3 - policy.rsl_mlp
END
}

# A line of text as a JSON string.
json_string() { printf '"%s"' "$(tr '\n\t' '  ' | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')"; }

write_record() {
    {
        printf '{\n "kit": 2,\n "date": "%s",\n "commit": "%s",\n "device_id": "%s",\n' "$(date -u +%FT%TZ)" "$(cat "$kit/COMMIT")" "$device"
        printf ' "quick": %s,\n "seconds": %d,\n "budget_s": %d,\n' "$([ "$quick" = 1 ] && echo true || echo false)" "$SECONDS" "$budget"
        printf ' "clocks_before": %s,\n "clocks_after": %s' "${before:-null}" "${after:-null}"
        for name in "${steps[@]}"; do printf ',\n "%s": %s' "$name" "$(cat "$parts/$name.json")"; done
        printf '\n}\n'
    } >"$record.partial" && mv "$record.partial" "$record"
}

# step NAME SECONDS COMMAND...: the last line of standard output is the step's JSON; otherwise what went wrong.
step() {
    local name="$1" limit="$2" begin end rc timed_out=false
    shift 2
    [ "$quick" = 1 ] && limit=3
    [ $((budget - SECONDS)) -ge "$limit" ] || limit=$((budget - SECONDS))
    if [ "$limit" -lt 1 ]; then
        failed=1
        skip "$name" "no time is left of $budget s"
        return 1
    fi
    begin=$(date +%s.%N)
    timeout --kill-after=2 "$limit" "$@" </dev/null >"$parts/$name.out" 2>"$parts/$name.err"
    rc=$?
    end=$(date +%s.%N)
    # 137: it did not stop by itself and was killed.
    if [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then timed_out=true; fi
    {
        printf '{"exit": %d, "timed_out": %s, "limit_s": %d, "seconds": %.1f, ' "$rc" "$timed_out" "$limit" "$(echo "$end $begin" | awk '{print $1 - $2}')"
        if tail -n 1 "$parts/$name.out" | grep -q '^[{[].*[]}]$'; then
            printf '"result": %s}' "$(tail -n 1 "$parts/$name.out")"
        else
            printf '"output": %s}' "$(tail -c 3000 "$parts/$name.out" "$parts/$name.err" 2>/dev/null | json_string)"
        fi
    } >"$parts/$name.json"
    steps+=("$name")
    write_record
    if [ "$timed_out" = true ]; then echo "$name: stopped after $limit s"; else echo "$name: exit $rc"; fi
    [ "$rc" -eq 0 ] || failed=1
    return "$rc"
}

skip() {
    printf '{"skipped": %s}' "$(printf '%s' "$2" | json_string)" >"$parts/$1.json"
    steps+=("$1")
    write_record
    echo "$1: skipped: $2"
}

# conformance with its own file of results
conformance() { "$kit/conformance" --only cuda --json "$parts/conformance.full" && tr '\n' ' ' <"$parts/conformance.full" && echo; }

# Whether models that a suite measures are here or in a folder above.
has_models() {
    local place="$PWD" files='*'
    [ "$1" = policy ] && files=policy
    while ! compgen -G "$place/bench/models/$files/*" >/dev/null; do
        [ -n "$place" ] && [ "$place" != / ] || return 1
        place="$(dirname "$place")"
    done
}

# bench SUITE DEVICE SECONDS ROUNDS ROWS: one suite on one device
bench() {
    local suite="$1" where="$2" seconds="$3" rounds="$4" rows=() row
    IFS=, read -ra chosen <<<"$5"
    for row in "${chosen[@]}"; do [ "$row" = - ] || rows+=(--rows "$row"); done
    # A quick run leaves no record among those of a device.
    [ "$quick" = 1 ] || rows+=(--record "$(dirname "$record")")
    step "bench_${suite}_$([ "$where" = cpu ] && echo cpu || echo gpu)" "$seconds" \
        "$kit/tectum" bench "$suite" --device "$where" --peers none --rounds "$rounds" "${rows[@]}" --json
}

smi() {
    local fields=name,uuid,driver_version,pstate,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,power.limit,temperature.gpu,ecc.mode.current
    command -v nvidia-smi >/dev/null || { printf 'null'; return; }
    nvidia-smi -i "${device#cuda:}" --query-gpu="$fields" --format=csv,noheader,nounits 2>/dev/null |
        awk -F', ' -v names="$fields" 'NR == 1 { n = split(names, key, ","); printf "{"; for (i = 1; i <= n; i++) printf "%s\"%s\": \"%s\"", (i > 1 ? ", " : ""), key[i], $i; printf "}" } END { if (!NR) printf "null" }'
}

step devices 10 "$kit/tectum" devices --json
before="$(smi)"
absent=
grep -Eq "\"id\": ?\"$device\"" "$parts/devices.out" || absent="$("$kit/tectum" bench programs --device "$device" 2>&1 >/dev/null | grep -v XDG_RUNTIME_DIR | head -n 1)"
if [ -z "$absent" ]; then
    export -f conformance
    export kit parts
    step conformance 45 bash -c conformance
    step verify 50 "$kit/tectum" verify --device "$device" --json
    step pendulum 30 "$kit/tectum" run pendulum --seconds 30 --seed 1 --device "$device" --runs "$parts/runs" --json
else
    for name in conformance verify pendulum; do skip "$name" "$absent"; done
fi
# Rows of the CPU are there to be compared: without a GPU they are skipped too.
while read -r suite gpu_s cpu_s rounds rows small; do
    [ "$quick" = 1 ] && rounds=1 rows="$small"
    reason="$absent"
    [ -n "$reason" ] || [[ "$suite" != @(infer|policy) ]] || has_models "$suite" || reason="no model in bench/models here or above"
    if [ -n "$reason" ]; then
        for name in "bench_${suite}_gpu" "bench_${suite}_cpu" "speedup_$suite"; do skip "$name" "$reason"; done
        continue
    fi
    bench "$suite" "$device" "$gpu_s" "$rounds" "$rows"
    gpu=$?
    bench "$suite" cpu "$cpu_s" "$rounds" "$rows"
    cpu=$?
    if [ "$gpu" -eq 0 ] && [ "$cpu" -eq 0 ]; then
        step "speedup_$suite" 3 "$kit/tectum" bench speedup "$parts/bench_${suite}_gpu.out" "$parts/bench_${suite}_cpu.out" --json &&
            "$kit/tectum" bench speedup "$parts/bench_${suite}_gpu.out" "$parts/bench_${suite}_cpu.out"
    else
        skip "speedup_$suite" "rows of one of the two devices are missing"
    fi
done < <(suites)
if command -v python3 >/dev/null; then step peers 30 python3 "$kit/peers.py"; else skip peers "python3 is not installed"; fi
after="$(smi)"
write_record
echo "record: $record"
exit "$failed"
