/* SPDX-License-Identifier: MIT */
/*
 * The store of the registry (nt_registry.c), for the files of its services. Functions with a path
 * return STATUS_KEY_DELETED if there is no such key: their callers have a handle of it.
 */
#ifndef VMM_NT_NT_REGISTRY_H
#define VMM_NT_NT_REGISTRY_H

#include "nt/nt_internal.h"

enum { NT_VALUE_NAME_BYTES = 128 };

struct nt_value {
	struct vmm_list link;
	uint32_t type, size_bytes;
	char name[NT_VALUE_NAME_BYTES];
	_Alignas(8) unsigned char data[];
};

/*
 * What ZwQueryKey tells of a key. Lengths are those of the longest ones, in characters and bytes.
 */
struct nt_key_description {
	uint64_t written; /* system time of the last change, 100 ns since 1601 */
	uint32_t subkeys, values;
	uint32_t longest_subkey, longest_value_name, largest_data;
};

/* Appends UTF-16 to ASCII text. Returns false if it does not fit or is not ASCII. */
bool nt_narrow(char *text, size_t size, const WCHAR *wide, size_t length);
/* Characters of a terminated UTF-16 text. */
size_t nt_wide_length(const WCHAR *text);
/* Returns the part of a path behind the last backslash. */
const char *nt_key_name(const char *path);
/* Removes backslashes at the end of a path. */
void nt_key_trim(char *path);

bool nt_registry_has_key(struct vmm_nt *nt, const char *path);
/* STATUS_OBJECT_NAME_NOT_FOUND: the key above does not exist. CREATED may be NULL. */
NTSTATUS nt_registry_create(struct vmm_nt *nt, const char *path, bool *created);
NTSTATUS nt_registry_delete(struct vmm_nt *nt, const char *path);
NTSTATUS nt_registry_describe(struct vmm_nt *nt, const char *path,
			      struct nt_key_description *description);
/* The path of subkey INDEX, or STATUS_NO_MORE_ENTRIES. */
NTSTATUS nt_registry_subkey(struct vmm_nt *nt, const char *path, uint32_t index,
			    char subkey[NT_KEY_BYTES]);
NTSTATUS nt_registry_set(struct vmm_nt *nt, const char *path, const char *name, uint32_t type,
			 const void *data, uint32_t size_bytes);
NTSTATUS nt_registry_unset(struct vmm_nt *nt, const char *path, const char *name);
/* Returns a copy of the value, to be freed with vmm_free. */
NTSTATUS nt_registry_copy(struct vmm_nt *nt, const char *path, const char *name,
			  struct nt_value **copy);
NTSTATUS nt_registry_copy_at(struct vmm_nt *nt, const char *path, uint32_t index,
			     struct nt_value **copy);

/* ---- nt_registry_key.c ---- */
/* Opens a handle of an existing key. */
NTSTATUS nt_key_open(struct vmm_nt *nt, const char *path, ACCESS_MASK access, HANDLE *handle);
/* The path of an open key whose handle has all rights of ACCESS; else STATUS_ACCESS_DENIED. */
NTSTATUS nt_key_path(struct vmm_nt *nt, HANDLE handle, ACCESS_MASK access, char path[NT_KEY_BYTES]);
/*
 * Copies an answer of SIZE bytes into the caller's buffer. HEADER: the bytes that must fit, or
 * nothing is written (STATUS_BUFFER_TOO_SMALL). STATUS_BUFFER_OVERFLOW: a part was written.
 */
NTSTATUS nt_key_answer(const void *answer, uint32_t size, uint32_t header, void *buffer,
		       uint32_t length, uint32_t *result_length);

#endif
