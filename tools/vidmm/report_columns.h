/* SPDX-License-Identifier: MIT */
/*
 * report_columns: the tables of a timeline as columns of a page. Times and offsets are differences,
 * which deflate well: times from the row before, and offsets in a segment from the end of the place
 * before. page/decode.js and page/model.js read them.
 */
#ifndef VIDMM_TOOLS_REPORT_COLUMNS_H
#define VIDMM_TOOLS_REPORT_COLUMNS_H

#include "column.h"
#include "timeline.h"

/* S: the numbers are signed. */
#define REPORT_COLUMNS(COLUMN)                                              \
	COLUMN(allocation_process)                                          \
	COLUMN(allocation_handle)                                           \
	COLUMN(allocation_bytes)                                            \
	COLUMN(allocation_flags)                                            \
	COLUMN(allocation_created) /* S */                                  \
	COLUMN(allocation_life)    /* ns + 1; 0: it exists at the end */    \
	COLUMN(allocation_in)                                               \
	COLUMN(allocation_out)                                              \
	COLUMN(allocation_evictions)                                        \
	COLUMN(move_time)                                                   \
	COLUMN(move_allocation) /* S, a difference */                       \
	COLUMN(move_reason)                                                 \
	COLUMN(move_segment) /* 0: system memory */                         \
	COLUMN(move_offset)  /* S; 0 in system memory */                    \
	COLUMN(move_pieces)  /* 0: the placement is contiguous */           \
	COLUMN(piece_bytes)                                                 \
	COLUMN(piece_offset) /* S */                                        \
	COLUMN(packet_time)                                                 \
	COLUMN(packet_ns) /* until its fence, + 1; 0: it is not complete */ \
	COLUMN(packet_node)                                                 \
	COLUMN(packet_process) /* row + 1; 0: the system */                 \
	COLUMN(wait_time)      /* the end */                                \
	COLUMN(wait_ns)                                                     \
	COLUMN(wait_process)                                                \
	COLUMN(wait_reason)                                                 \
	COLUMN(wait_allocation) /* row + 1; 0: none */                      \
	COLUMN(mark_time)                                                   \
	COLUMN(mark_type)                                                   \
	COLUMN(mark_allocation) /* S, a difference */

#define COLUMN(name) struct column name;
struct report_columns {
	REPORT_COLUMNS(COLUMN)
};
#undef COLUMN

/* Fills columns that are all zero. */
void report_columns_fill(struct report_columns *columns, const struct timeline *timeline);
void report_columns_finish(struct report_columns *columns);

#endif
