#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/storm.sh [BUILD [ROUNDS [HOSTS [SEED]]]]: programs are killed under load, at moments that nobody chooses, and hosts with all their clients
# (tests/apart/test_storm.c); a thousand and a hundred times unless said otherwise. The suite does the same for a few rounds.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/${1:-gcc}/tests/apart
seed=${4:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "seed $seed"
exec "$build/test_apart_storm" "$build/apart_host" "$build/apart_client" "${2:-1000}" "${3:-100}" "$seed"
