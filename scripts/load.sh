# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# A load beside the tests: one busy loop on each CPU, at the priority of the tests. Sourced by ./x.

LOAD=()

# A loop ends with this shell, even if the shell is killed. There is no trap for SIGTERM: bash would
# run it after the tests have ended, but runs that for EXIT at once.
load_start() {
	local count
	count=$(nproc)
	trap load_end EXIT
	while [ "${#LOAD[@]}" -lt "$count" ]; do
		(
			trap - EXIT
			while kill -0 $$ 2>/dev/null; do
				for ((i = 0; i < 100000; i++)); do :; done
			done
		) &
		LOAD+=("$!")
	done
}

load_end() {
	[ "${#LOAD[@]}" -gt 0 ] || return 0
	kill "${LOAD[@]}" 2>/dev/null || true
	wait "${LOAD[@]}" 2>/dev/null || true
	LOAD=()
}

# load_note: says what load the tests ran beside, and ends it. Returns 1 if a loop has ended early.
load_note() {
	local pid ticks=0 stat running=0 count=${#LOAD[@]}
	for pid in "${LOAD[@]}"; do
		stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
		running=$((running + 1))
		# The name in parentheses has no spaces; fields 14 and 15 are user and system time.
		read -ra stat <<<"$stat"
		ticks=$((ticks + stat[13] + stat[14]))
	done
	load_end
	echo "load: $count busy loops, one per CPU, used $((ticks / $(getconf CLK_TCK))) s of CPU time" \
		"beside the tests"
	if [ "$running" -lt "$count" ]; then
		echo "load: only $running of the loops ran to the end"
		return 1
	fi
}
