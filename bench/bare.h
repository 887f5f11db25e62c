/* SPDX-License-Identifier: MIT */
/*
 * bare: softgpu with some DDIs replaced by minimal ones, so that a case measures the library and
 * not the miniport. It applies to adapters that are started while it is set.
 */
#ifndef VMM_BENCH_BARE_H
#define VMM_BENCH_BARE_H

#include <dispmprt.h>

enum bench_bare {
	BENCH_WHOLE,
	/*
	 * The four DDIs of allocations create no objects and return a constant handle. The GPU must
	 * not use such allocations.
	 */
	BENCH_NO_OBJECTS,
	BENCH_NO_PAGING /* paging buffers are empty: no content is copied */
};
/* Selects the replacement for adapters started from now on. */
void bench_bare(enum bench_bare what);
/*
 * Calls EDIT for the table that softgpu registers, so that a case can replace entries itself. NULL
 * ends this.
 */
typedef void bench_bare_edit(DRIVER_INITIALIZATION_DATA *table);
void bench_bare_entries(bench_bare_edit *edit);

#endif
