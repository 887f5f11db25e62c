/* SPDX-License-Identifier: MIT */
/*
 * softgpu with DDIs that do next to nothing, so that what is measured is the library's work and not the miniport's. Of
 * the adapters that start between two calls of bench_bare.
 */
#ifndef VMM_BENCH_BARE_H
#define VMM_BENCH_BARE_H

#include <dispmprt.h>

enum bench_bare {
	BENCH_WHOLE,
	BENCH_NO_OBJECTS, /* allocations are not the miniport's: their four DDIs hand out numbers. No GPU work with them */
	BENCH_NO_PAGING /* paging buffers are empty: nothing is copied */
};
void bench_bare(enum bench_bare what);
/* The same for entries of a case's own: `edit` changes softgpu's table on its way. NULL: no more. */
typedef void bench_bare_edit(DRIVER_INITIALIZATION_DATA *table);
void bench_bare_entries(bench_bare_edit *edit);

#endif
