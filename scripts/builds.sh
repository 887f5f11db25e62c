# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The builds by name: compiler, options, and how each runs the tests. Sourced by ./x.

# steady COMMAND...: runs a command without address space randomization. The range that newer
# kernels randomize is larger than the sanitizers of Debian 12 support.
steady() {
	if command -v setarch >/dev/null && setarch "$(uname -m)" -R true 2>/dev/null; then
		setarch "$(uname -m)" -R "$@"
	else
		"$@"
	fi
}

build_compiler() {
	case "$1" in
	gcc | release | demo | coverage) echo gcc ;;
	clang | asan | tsan | fuzz) echo clang ;;
	*) die "unknown build: $1" ;;
	esac
}

# The same, through ccache if it is installed. Meson would use ccache itself, but only if CC is not set.
cached_compiler() {
	local compiler
	compiler=$(build_compiler "$1") || return
	if command -v ccache >/dev/null; then
		compiler="ccache $compiler"
	fi
	echo "$compiler"
}

build_options() {
	case "$1" in
	gcc | clang) echo -Dshared_tests=true ;;
	asan) echo -Db_sanitize=address,undefined -Db_lundef=false -Dshared_tests=true ;;
	fuzz) echo -Db_sanitize=address,undefined -Db_lundef=false -Dguided=true ;;
	tsan) echo -Db_sanitize=thread -Db_lundef=false -Dshared_tests=true ;;
	# What compiles fastest: its program is used once or twice.
	demo) echo --buildtype=plain -Doptimization=0 -Dtests=false ;;
	# Without optimization a line and a branch of the source are one in the program. Threads
	# and processes count in the same counters.
	coverage)
		echo -Db_coverage=true -Doptimization=0 -Dc_args=-fprofile-update=atomic \
			-Dshared_tests=true
		;;
	# Without tests, since link-time optimization would optimize the library in each of them.
	release) echo --buildtype=release -Db_lto=true -Dtests=false ;;
	esac
}

# option_of NAME OPTION: the value of an option of Meson in build/NAME.
option_of() {
	meson introspect "build/$1" --buildoptions | python3 -c '
import json, sys
print(*(option["value"] for option in json.load(sys.stdin) if option["name"] == sys.argv[1]))' "$2"
}

installed_libdir() {
	option_of "$1" libdir
}

# set_prefix NAME PREFIX: sets where build/NAME is installed; an empty PREFIX leaves it. Nothing is
# compiled again for it.
set_prefix() {
	[ -z "$2" ] || [ "$(option_of "$1" prefix)" = "$2" ] || meson configure "build/$1" "-Dprefix=$2"
}

# build NAME [TARGET...]: configures and compiles build/NAME, or only the given targets. PREFIX: where
# it will be installed. Returns 1 on failure.
build() {
	local name=$1 log=build/$1.log
	shift
	prepare "$name" || return
	if ! ninja -C "build/$name" -k 0 "$@" >"$log" 2>&1; then
		grep -aE '^FAILED|error:|warning:|ERROR:' "$log" | head -n 40 || tail -n 40 "$log"
		return 1
	fi
}

# prepare NAME: configures build/NAME, and sets its PREFIX.
prepare() {
	local name=$1 compiler options log
	compiler=$(cached_compiler "$name")
	read -ra options <<<"$(build_options "$name")"
	log=build/$name.log
	mkdir -p build
	echo "== build $name"
	if ! configure "$name" "$compiler" "${options[@]}" >"$log" 2>&1 ||
		! set_prefix "$name" "${PREFIX:-}" >>"$log" 2>&1; then
		tail -n 30 "$log"
		return 1
	fi
	grep -ah 'WARNING: not built' "$log" || true
}

# What Meson reads at configuration but ninja does not watch (run_command in meson.build): which
# folders and benchmarks exist, and the operations.
read_once() {
	find . -path ./build -prune -o \( -name meson.build -o -path './bench/bench*.c' \) -print | sort
	cat src/wire/operations.tsv
}

# Clang's builds are linked by lld, in half the processor time: they link 250 to 300 programs each.
linker_of() {
	case "$(build_compiler "$1")" in
	clang) echo lld ;;
	*) echo bfd ;;
	esac
}

# The C++ compiler that belongs to a C compiler.
cpp_of() {
	case "$1" in
	*clang) echo "$1++" ;;
	*) echo "${1%gcc}g++" ;;
	esac
}

# Configures build/NAME, or leaves it to ninja if nothing that ninja does not watch has changed. If a
# reconfiguration fails, or if the options or the C++ compiler are others than before (Meson 1.0 ignores
# new ones), the build folder is deleted and configured anew.
configure() {
	local name=$1 compiler=$2 read_now options
	shift 2
	read_now=$(read_once)
	options="$(cpp_of "$compiler") $*"
	if [ -f "build/$name/build.ninja" ] && [ "$(cat "build/$name/options")" = "$options" ]; then
		[ "$(cat "build/$name/read_once" 2>/dev/null)" != "$read_now" ] || return 0
		if meson setup --reconfigure "build/$name" "$@"; then
			echo "$read_now" >"build/$name/read_once"
			return
		fi
	fi
	rm -rf "build/$name"
	CC=$compiler CC_LD=$(linker_of "$name") CXX=$(cpp_of "$compiler") CXX_LD=$(linker_of "$name") \
		meson setup "build/$name" "$@" || return
	echo "$options" >"build/$name/options"
	echo "$read_now" >"build/$name/read_once"
}

# run_suite NAME [TEST...]: runs the tests of build/NAME, or the given ones, and shows the progress.
# Tests that measure time, take long or read sources run in the gcc build only. Sanitizer builds also
# skip the tests that only compile headers. ThreadSanitizer also skips the tests of what the program
# reads and prints, whose runs have one thread or are in other tests, too. Coverage needs neither tests
# that do not run the library of its build, nor replays and what the program prints of them, which
# execute no other lines and take long without optimization. Two processes more than CPUs, because some
# tests wait in real time.
run_suite() {
	local name=$1 skip=() wrap=()
	shift
	case "$name" in
	gcc) ;;
	clang) skip=(--no-suite tidy --no-suite timing --no-suite slow) ;;
	coverage)
		skip=(--no-suite tidy --no-suite timing --no-suite headers --no-suite abi
			--no-suite install --no-suite replay --no-suite text)
		;;
	*)
		skip=(--no-suite tidy --no-suite timing --no-suite slow --no-suite headers
			--no-suite abi)
		[ "$name" != tsan ] || skip+=(--no-suite text)
		wrap=(steady)
		;;
	esac
	echo "== test $name"
	rm -f "build/$name/meson-logs/testlog.json"
	ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 \
		"${wrap[@]}" python3 scripts/progress.py "$name" "build/$name" "build/$name-test.log" \
		meson test -C "build/$name" --no-rebuild --num-processes "$(($(nproc) + 2))" \
			"${skip[@]}" "$@"
}
