/* SPDX-License-Identifier: MIT */
/*
 * The copier: a small GPU that fills and copies memory. Its registers and commands, which the
 * device model (copier_device.c) and the miniport (copier_kmd.c) agree on, and what the miniport
 * and its clients pass to each other. All addresses of the hardware are physical addresses.
 */
#ifndef COPIER_H
#define COPIER_H

#include <stdint.h>

/* ---- the hardware ---- */

#define COPIER_VENDOR 0x1D4Du
#define COPIER_DEVICE 0x0C09u
enum { COPIER_BAR_REGISTERS = 0, COPIER_BAR_MEMORY = 2 };

/* Registers of 32 bits, by offset. */
enum copier_register {
	COPIER_ID = 0x00, /* reads as COPIER_ID_VALUE */
	COPIER_CONTROL = 0x04,
	COPIER_RING_LOW = 0x08, /* address of the ring, in system memory */
	COPIER_RING_HIGH = 0x0C,
	COPIER_RING_SIZE = 0x10, /* entries, a power of two up to 1024 */
	COPIER_TAIL = 0x14,      /* the doorbell: entries written since the reset, modulo 2^32 */
	COPIER_HEAD = 0x18,      /* read only: entries executed */
	COPIER_STATUS = 0x1C,    /* causes of the interrupt; writing a 1 clears it */
	COPIER_FENCE_LOW = 0x20, /* where the fence of each executed entry is written */
	COPIER_FENCE_HIGH = 0x24,
	COPIER_FAULT_FENCE = 0x28 /* read only: of the entry that could not be executed */
};
#define COPIER_ID_VALUE 0x59504F43u
#define COPIER_ENABLE   0x1u /* of CONTROL */
#define COPIER_RESET    0x2u
#define COPIER_DONE     0x1u /* of STATUS */
#define COPIER_FAULT    0x2u
#define COPIER_RING_MAX 1024u

struct copier_entry {
	uint64_t commands;
	uint32_t bytes; /* of the commands */
	uint32_t fence;
};

enum copier_op { COPIER_FILL = 1, COPIER_COPY = 2 };
struct copier_command {
	uint32_t op, value;
	/* FILL: a multiple of 4 bytes; the ranges of COPY may overlap */
	uint64_t destination, source, bytes;
};

/* ---- between clients and the miniport ---- */

struct copier_allocation { /* pPrivateDriverData */
	uint64_t bytes;
};

/*
 * A command of a client: the destination and, of COPY, the source are entries of the list, and
 * offsets in these allocations.
 */
struct copier_request {
	uint32_t op, value;
	uint32_t destination, source;
	uint64_t bytes;
	uint32_t destination_offset, source_offset;
};

#endif
