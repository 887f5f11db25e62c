/* SPDX-License-Identifier: MIT */
/* The private formats of softvram, which its user-mode driver (here: commands.c) shares. */
#ifndef SOFTVRAM_H
#define SOFTVRAM_H

enum { SVR_SYSTEM_ONLY = 0x1 };

/* Private data of an allocation. */
struct SVR_ALLOCATION {
	unsigned long long Size;
	unsigned int Flags;
	unsigned int Segment; /* preferred; 0: video memory */
};

enum { SVR_FILL = 1, SVR_COPY = 2 };

/* One command of a command buffer. To and From are entries of the allocation list. */
struct SVR_COMMAND {
	unsigned int Opcode;
	unsigned int Pattern; /* of SVR_FILL, for each 4 bytes */
	unsigned int To, From;
	unsigned long long ToOffset, FromOffset;
	unsigned long long Length;
};

#endif
