/* SPDX-License-Identifier: MIT */
/*
 * After how long a test that waits for another thread or program reports a hang. A test fails for
 * wrong behavior, never for slowness, so this is longer than any wait on a busy machine takes.
 * Meson's limit for a whole test program is longer (test_timeout_s in meson.build).
 */
#ifndef VMM_TESTS_HANG_H
#define VMM_TESTS_HANG_H

#define HANG_S  1800
#define HANG_MS (HANG_S * 1000)

#endif
