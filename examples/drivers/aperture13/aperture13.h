/* SPDX-License-Identifier: MIT */
/*
 * The private formats of aperture13, which its user-mode driver (here: commands.c) and the miniport
 * share. The fixed-width types of both compilers are the same, so the header has none of Windows.
 */
#ifndef APERTURE13_H
#define APERTURE13_H

/* Private data of an allocation. */
typedef struct _A13_ALLOCATION {
	unsigned long long Size;
} A13_ALLOCATION;

enum { A13_FILL = 1, A13_COPY = 2 };

/* One command of a command buffer. Destination and Source are entries of the allocation list. */
typedef struct _A13_COMMAND {
	unsigned int Opcode;
	unsigned int Pattern; /* of A13_FILL, for each 4 bytes */
	unsigned int Destination, Source;
	unsigned long long DestinationOffset, SourceOffset;
	unsigned long long Length;
} A13_COMMAND;

#endif
