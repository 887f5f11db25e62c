/* SPDX-License-Identifier: MIT */
/* code_address: the function and the source line of an address in this process. */
#ifndef VIDMM_TOOLS_CODE_ADDRESS_H
#define VIDMM_TOOLS_CODE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes "FUNCTION at FILE:LINE (OBJECT+0xOFFSET)" for the address. FUNCTION and line come from
 * addr2line, if the program exists and the object has debug information. Otherwise the text has the
 * nearest exported symbol, or only the object. CALLER: the address is that behind a call. Uses
 * neither stdio nor the heap, but locks of the loader: a signal handler calls it in a child
 * process.
 */
void code_address_describe(const void *address, bool caller, char *text, size_t size);

/*
 * Returns the index of the first of the addresses that is in the object that contains `code`, COUNT
 * if there is none.
 */
unsigned code_address_find(void *const *addresses, unsigned count, const void *code);

#endif
