/* SPDX-License-Identifier: MIT */
/* A shared object that is no driver. */
int vidmm_test_nothing;
