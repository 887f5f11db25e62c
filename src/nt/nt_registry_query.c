/* SPDX-License-Identifier: MIT */
/*
 * RtlQueryRegistryValues: a table of value names, each delivered to a routine or directly into a
 * buffer. Subkeys, enumeration and deletion are not built: they fail with STATUS_NOT_SUPPORTED.
 * Stateless.
 */
#include "nt/nt_registry.h"

#include <string.h>

#define STRING_TAG    0x53656752u /* "RgeS": the buffer of a string that is returned directly */
#define CONTROL_PATH  "\\Registry\\Machine\\System\\CurrentControlSet\\Control"
#define SERVICES_PATH "\\Registry\\Machine\\System\\CurrentControlSet\\Services"

/* A value to be delivered: from the registry, or the entry's default. */
struct found {
	ULONG type, size_bytes;
	void *data;
};

static size_t wide_bytes(const WCHAR *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return (length + 1) * sizeof(WCHAR);
}

static bool is_text(ULONG type)
{
	return type == REG_SZ || type == REG_EXPAND_SZ || type == REG_MULTI_SZ;
}

static NTSTATUS base_path(struct vmm_nt *nt, ULONG relative_to, PCWSTR path, char key[NT_KEY_BYTES])
{
	struct nt_object *object;

	key[0] = 0;
	if (relative_to & RTL_REGISTRY_HANDLE) {
		object = nt_handle_get(nt, (HANDLE)(ULONG_PTR)path, OBJECT_KEY);
		if (!object)
			return STATUS_INVALID_HANDLE;
		strcpy(key, ((struct nt_key *)object)->path);
		nt_object_put(nt, object);
		return STATUS_SUCCESS;
	}
	switch (relative_to & ~(ULONG)RTL_REGISTRY_OPTIONAL) {
	case RTL_REGISTRY_ABSOLUTE:
		break;
	case RTL_REGISTRY_CONTROL:
		strcpy(key, CONTROL_PATH "\\");
		break;
	case RTL_REGISTRY_SERVICES:
		strcpy(key, SERVICES_PATH "\\");
		break;
	default:
		return STATUS_NOT_SUPPORTED;
	}
	if (!path || !nt_narrow(key, NT_KEY_BYTES, path, wide_bytes(path) / sizeof(WCHAR) - 1))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	return STATUS_SUCCESS;
}

/* ---- RTL_QUERY_REGISTRY_DIRECT ---- */

static NTSTATUS direct_text(const struct found *found, UNICODE_STRING *string)
{
	if (found->size_bytes > UINT16_MAX)
		return STATUS_BUFFER_TOO_SMALL;
	if (!string->Buffer) {
		string->Buffer = ExAllocatePoolWithTag(PagedPool, found->size_bytes, STRING_TAG);
		if (!string->Buffer)
			return STATUS_INSUFFICIENT_RESOURCES;
		string->MaximumLength = (USHORT)found->size_bytes;
	} else if (string->MaximumLength < found->size_bytes) {
		return STATUS_BUFFER_TOO_SMALL;
	}
	memcpy(string->Buffer, found->data, found->size_bytes);
	string->Length = (USHORT)(found->size_bytes - sizeof(WCHAR));
	return STATUS_SUCCESS;
}

/*
 * Delivers a value longer than a ULONG. The buffer begins with its own size; a negative size asks
 * for the data only.
 */
static NTSTATUS direct_long(const struct found *found, char *buffer)
{
	const size_t header = 2 * sizeof(ULONG);
	LONG space;

	memcpy(&space, buffer, sizeof(space));
	if (space < 0) {
		if (found->size_bytes > 0u - (ULONG)space)
			return STATUS_BUFFER_TOO_SMALL;
		memcpy(buffer, found->data, found->size_bytes);
		return STATUS_SUCCESS;
	}
	if (found->size_bytes + header > (ULONG)space)
		return STATUS_BUFFER_TOO_SMALL;
	memcpy(buffer, &found->size_bytes, sizeof(ULONG));
	memcpy(buffer + sizeof(ULONG), &found->type, sizeof(ULONG));
	memcpy(buffer + header, found->data, found->size_bytes);
	return STATUS_SUCCESS;
}

static NTSTATUS deliver_direct(const RTL_QUERY_REGISTRY_TABLE *entry, const struct found *found)
{
	ULONG expected = entry->DefaultType >> RTL_QUERY_REGISTRY_TYPECHECK_SHIFT;

	if (entry->QueryRoutine || !entry->EntryContext)
		return STATUS_INVALID_PARAMETER;
	if ((entry->Flags & RTL_QUERY_REGISTRY_TYPECHECK) && expected != found->type)
		return STATUS_OBJECT_TYPE_MISMATCH;
	if (is_text(found->type))
		return direct_text(found, entry->EntryContext);
	if (found->size_bytes > sizeof(ULONG))
		return direct_long(found, entry->EntryContext);
	memcpy(entry->EntryContext, found->data, found->size_bytes);
	return STATUS_SUCCESS;
}

/* ---- through a routine ---- */

static NTSTATUS call(const RTL_QUERY_REGISTRY_TABLE *entry, ULONG type, void *data,
		     ULONG size_bytes, PVOID context)
{
	NTSTATUS status = entry->QueryRoutine(entry->Name, type, data, size_bytes, context,
					      entry->EntryContext);

	return status == STATUS_BUFFER_TOO_SMALL ? STATUS_SUCCESS : status;
}

static NTSTATUS deliver_by_routine(const RTL_QUERY_REGISTRY_TABLE *entry, const struct found *found,
				   PVOID context)
{
	char *at = found->data, *end = at + found->size_bytes;
	NTSTATUS status = STATUS_SUCCESS;

	if (!entry->QueryRoutine)
		return STATUS_INVALID_PARAMETER;
	if (found->type != REG_MULTI_SZ || (entry->Flags & RTL_QUERY_REGISTRY_NOEXPAND))
		return call(entry, found->type, found->data, found->size_bytes, context);
	/* Each string separately; the list ends with an empty string. */
	while (NT_SUCCESS(status) && at < end && *(WCHAR *)(void *)at) {
		ULONG bytes = (ULONG)wide_bytes((WCHAR *)(void *)at);

		status = call(entry, REG_SZ, at, bytes, context);
		at += bytes;
	}
	return status;
}

/* ---- one entry ---- */

static NTSTATUS use_default(const RTL_QUERY_REGISTRY_TABLE *entry, struct found *found)
{
	found->type = entry->DefaultType & 0xFF;
	if (found->type == REG_NONE)
		return entry->Flags & RTL_QUERY_REGISTRY_REQUIRED ? STATUS_OBJECT_NAME_NOT_FOUND
								  : STATUS_PENDING;
	found->data = entry->DefaultData;
	found->size_bytes = entry->DefaultLength;
	if (!found->size_bytes && found->type == REG_SZ && found->data)
		found->size_bytes = (ULONG)wide_bytes(found->data);
	return found->data ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static NTSTATUS query_entry(struct vmm_nt *nt, const char *key,
			    const RTL_QUERY_REGISTRY_TABLE *entry, PVOID context)
{
	const ULONG not_supported =
		RTL_QUERY_REGISTRY_SUBKEY | RTL_QUERY_REGISTRY_TOPKEY | RTL_QUERY_REGISTRY_DELETE;
	char name[sizeof(((struct nt_value *)0)->name)] = "";
	struct nt_value *value = NULL;
	struct found found = {0};
	NTSTATUS status;

	if (entry->Flags & not_supported)
		return STATUS_NOT_SUPPORTED;
	if (!entry->Name) {
		if (entry->Flags & RTL_QUERY_REGISTRY_DIRECT)
			return STATUS_INVALID_PARAMETER;
		return entry->Flags & RTL_QUERY_REGISTRY_NOVALUE
			       ? call(entry, REG_NONE, NULL, 0, context)
			       : STATUS_NOT_SUPPORTED;
	}
	if (!nt_narrow(name, sizeof(name), entry->Name,
		       wide_bytes(entry->Name) / sizeof(WCHAR) - 1))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	status = nt_registry_copy(nt, key, name, &value);
	if (NT_SUCCESS(status))
		found = (struct found){
			.type = value->type, .size_bytes = value->size_bytes, .data = value->data};
	else if (status == STATUS_OBJECT_NAME_NOT_FOUND)
		status = use_default(entry, &found);
	/* STATUS_PENDING here: neither a value nor a default exists, and none is required. */
	if (status == STATUS_SUCCESS)
		status = entry->Flags & RTL_QUERY_REGISTRY_DIRECT
				 ? deliver_direct(entry, &found)
				 : deliver_by_routine(entry, &found, context);
	else if (status == STATUS_PENDING)
		status = STATUS_SUCCESS;
	vmm_free(value);
	return status;
}

NTSTATUS RtlQueryRegistryValues(ULONG RelativeTo, PCWSTR Path, PRTL_QUERY_REGISTRY_TABLE QueryTable,
				PVOID Context, PVOID Environment)
{
	struct vmm_nt *nt = vmm_nt_current();
	char key[NT_KEY_BYTES];
	NTSTATUS status;

	(void)Environment;
	nt_limit(nt, "RtlQueryRegistryValues", PASSIVE_LEVEL);
	if (!QueryTable)
		return STATUS_INVALID_PARAMETER;
	status = base_path(nt, RelativeTo, Path, key);
	if (!NT_SUCCESS(status))
		return status;
	if (!(RelativeTo & RTL_REGISTRY_OPTIONAL) && !nt_registry_has_key(nt, key))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	for (; NT_SUCCESS(status) && (QueryTable->QueryRoutine || QueryTable->Name); QueryTable++)
		status = query_entry(nt, key, QueryTable, Context);
	return status;
}
