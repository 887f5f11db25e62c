/* SPDX-License-Identifier: MIT */
/* Checks of a predicate: it is true, false with one member broken, and true again. */
#ifndef VMM_TESTS_UNIT_BREAKS_H
#define VMM_TESTS_UNIT_BREAKS_H

#include "support/test.h"

#define BREAKS(predicate, member, value)              \
	do {                                          \
		__typeof__(member) valid_ = (member); \
                                                      \
		assert_true(predicate);               \
		(member) = (value);                   \
		assert_false(predicate);              \
		(member) = valid_;                    \
		assert_true(predicate);               \
	} while (0)

#endif
