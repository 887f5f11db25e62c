/* SPDX-License-Identifier: MIT */
/* Files: what nt_file.c, nt_file_io.c and the requests of nt_irp.c share. */
#ifndef VMM_NT_NT_FILE_H
#define VMM_NT_NT_FILE_H

#include "nt/nt_internal.h"

struct nt_file {
	struct nt_object object; /* its body is `body` */
	struct vmm_os_file file;
	ACCESS_MASK access;
	bool synchronous; /* reads and writes without an offset use and advance the position */
	FILE_OBJECT body;
};

struct nt_file_transfer {
	bool write;
	void *buffer;
	ULONG length;
	const LARGE_INTEGER *offset; /* NULL: at the position */
};
/* Reads or writes, and returns the status and the number of bytes in *result. */
NTSTATUS nt_file_transfer(struct vmm_nt *nt, struct nt_file *file,
			  const struct nt_file_transfer *transfer, IO_STATUS_BLOCK *result);

#endif
