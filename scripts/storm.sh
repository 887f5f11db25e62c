#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/storm.sh [BUILD [ROUNDS [HOSTS [SEED]]]]: kills clients under load at random moments
# (ROUNDS times, default 1000), and hosts with all their clients (HOSTS times, default 100); see
# tests/out_of_process/test_storm.c. Recordings of a session (../shared/traces, or VIDMM_TRACES) are played
# at the same time, with less memory than they need together; without any, the recordings of the
# tests. The test suite does the same for a few rounds.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/${1:-gcc}
seed=${4:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
traces=${VIDMM_TRACES:-../shared/traces}
shopt -s nullglob
recordings=("$traces"/session6-*.trace.zst)
memory=(224 256)
if [ "${#recordings[@]}" -eq 0 ]; then
	recordings=(tests/replay/data/*.trace)
	memory=(4 16)
fi
echo "seed $seed, ${memory[*]} MiB, ${#recordings[@]} recordings"
exec "$build/tests/out_of_process/test_out_of_process_storm" "$build/tests/out_of_process/out_of_process_host" \
	"$build/tests/out_of_process/out_of_process_client" "${2:-1000}" "${3:-100}" "$seed" \
	"${memory[@]}" "$build/tools/vidmm/vidmm" "${recordings[@]}"
