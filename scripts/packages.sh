# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The packages that a build needs, with their names in Debian 12, and their installation.
# Sourced by ./x.

# shellcheck disable=SC2034 # used by ./x
BUILD_PACKAGES=(
	gcc g++ libc6-dev meson ninja-build pkgconf python3
	libzstd-dev zlib1g-dev libjansson-dev libpopt-dev libsystemd-dev libcmocka-dev
	directx-headers-dev node-d3 libsqlite3-dev libncurses-dev python3-jsonschema
)
# shellcheck disable=SC2034 # used by ./x
DEB_PACKAGES=(debhelper dpkg-dev lintian)
# shellcheck disable=SC2034 # used by ./x
DOCS_PACKAGES=(mkdocs)
# shellcheck disable=SC2034 # used by ./x
MODEL_PACKAGES=(spin)
# shellcheck disable=SC2034 # used by ./x
CLANG_PACKAGES=(clang lld libclang-rt-14-dev)

die() {
	echo "x: $*" >&2
	exit 1
}

missing_packages() {
	local package
	for package in "$@"; do
		dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
			echo "$package"
	done
}

# may_install PACKAGE...: asks for permission on a terminal. Without one, as in a CI job, the answer is yes.
may_install() {
	[ -t 0 ] && [ -t 2 ] || return 0
	local answer
	read -rp "x: these packages are missing: $*
Install them with apt-get? [Y/n] " answer
	[[ ${answer:-y} == [yY]* ]]
}

# need_packages PACKAGE...: installs the missing packages, as root or by sudo, after a question on a
# terminal. Without apt, root or sudo it ends with a message that lists them.
need_packages() {
	if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
		command -v meson >/dev/null && return
		die "this system has no apt; install the contents of these Debian packages and retry: $*"
	fi
	local missing as_root=()
	mapfile -t missing < <(missing_packages "$@")
	[ "${#missing[@]}" -gt 0 ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
			die "packages are missing, and this is neither root nor a user with sudo. As root, run:
  apt-get install --no-install-recommends ${missing[*]}"
		fi
		as_root=(sudo -n)
	fi
	may_install "${missing[@]}" || die "nothing was installed. As root, run:
  apt-get install --no-install-recommends ${missing[*]}"
	echo "x: installing ${missing[*]}" >&2
	local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
		apt-get install -y -qq --no-install-recommends)
	"${install[@]}" "${missing[@]}" >&2 && return
	"${as_root[@]}" apt-get update -qq >&2
	"${install[@]}" "${missing[@]}" >&2 || die "could not install: ${missing[*]}"
}
