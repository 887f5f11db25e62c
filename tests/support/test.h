/* SPDX-License-Identifier: MIT */
/*
 * Included by every test program: cmocka 1.1 needs five headers included before it, in this order.
 * One program runs one group (cmocka_run_group_tests_name), because TAP allows one plan.
 */
#ifndef VMM_TESTS_SUPPORT_TEST_H
#define VMM_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
