/* SPDX-License-Identifier: MIT */
/* The private formats of gpummu2, which its user-mode driver (here: commands.c) shares. */
#ifndef GPUMMU2_H
#define GPUMMU2_H

enum { G2_SYSTEM_ONLY = 0x1 };

/* Private data of an allocation. */
typedef struct _G2_ALLOCATION {
	unsigned long long Size;
	unsigned int Flags;
	unsigned int Segment; /* preferred; 0: video memory */
} G2_ALLOCATION;

enum { G2_FILL = 1, G2_COPY = 2 };

/* One command of a command buffer. The addresses are GPU virtual addresses of the process. */
typedef struct _G2_COMMAND {
	unsigned int Opcode;
	unsigned int Pattern; /* of G2_FILL, for each 4 bytes */
	unsigned long long To, From;
	unsigned long long Length;
} G2_COMMAND;

#endif
