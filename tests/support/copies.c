/* SPDX-License-Identifier: MIT */
/*
 * For programs with copies of modules that the shared library has as well (wrapped_modules in
 * tests/meson.build). AddressSanitizer reports a global variable that two libraries define; here
 * that is intended. It still reports two definitions of different sizes.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_odr_violation=1";
}
