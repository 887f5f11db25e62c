/* SPDX-License-Identifier: MIT */
/*
 * RtlQueryRegistryValues: a table of value names, each delivered to a routine or directly into a
 * buffer. Subkeys, enumeration and deletion are not built: they fail with STATUS_NOT_SUPPORTED
 * (NT-11). The other services that name a key by path are here, too.
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
	return (nt_wide_length(text) + 1) * sizeof(WCHAR);
}

static bool is_text(ULONG type)
{
	return type == REG_SZ || type == REG_EXPAND_SZ || type == REG_MULTI_SZ;
}

/* The keys that RelativeTo names. */
static const char *const base[] = {
	[RTL_REGISTRY_ABSOLUTE] = "",
	[RTL_REGISTRY_SERVICES] = SERVICES_PATH "\\",
	[RTL_REGISTRY_CONTROL] = CONTROL_PATH "\\",
	[RTL_REGISTRY_WINDOWS_NT] =
		"\\Registry\\Machine\\Software\\Microsoft\\Windows NT\\CurrentVersion\\",
	[RTL_REGISTRY_DEVICEMAP] = "\\Registry\\Machine\\Hardware\\DeviceMap\\",
	[RTL_REGISTRY_USER] = "\\Registry\\User\\.Default\\",
};

static NTSTATUS base_path(struct vmm_nt *nt, ULONG relative_to, PCWSTR path, char key[NT_KEY_BYTES])
{
	ULONG root = relative_to & ~(ULONG)RTL_REGISTRY_OPTIONAL;

	if (relative_to & RTL_REGISTRY_HANDLE)
		return nt_key_path(nt, (HANDLE)(ULONG_PTR)path, 0, key);
	if (root >= VMM_ARRAY_LENGTH(base))
		return STATUS_INVALID_PARAMETER;
	strcpy(key, base[root]);
	if (!path || !nt_narrow(key, NT_KEY_BYTES, path, nt_wide_length(path)))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	nt_key_trim(key);
	return STATUS_SUCCESS;
}

/* ---- RTL_QUERY_REGISTRY_DIRECT ---- */

/* A value without a terminator, which may be empty, gets one. */
static NTSTATUS direct_text(const struct found *found, UNICODE_STRING *string)
{
	const WCHAR *text = found->data;
	ULONG count = found->size_bytes / (ULONG)sizeof(WCHAR), bytes;

	if (count && !text[count - 1])
		count--;
	bytes = (count + 1) * (ULONG)sizeof(WCHAR);
	if (bytes > UINT16_MAX)
		return STATUS_BUFFER_TOO_SMALL;
	if (!string->Buffer) {
		string->Buffer = ExAllocatePoolWithTag(PagedPool, bytes, STRING_TAG);
		if (!string->Buffer)
			return STATUS_INSUFFICIENT_RESOURCES;
		string->MaximumLength = (USHORT)bytes;
	} else if (string->MaximumLength < bytes) {
		return STATUS_BUFFER_TOO_SMALL;
	}
	if (count)
		memcpy(string->Buffer, text, count * sizeof(WCHAR));
	string->Buffer[count] = 0;
	string->Length = (USHORT)(count * sizeof(WCHAR));
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
	WCHAR *at = found->data;
	size_t left = found->size_bytes / sizeof(WCHAR);
	NTSTATUS status = STATUS_SUCCESS;

	if (!entry->QueryRoutine)
		return STATUS_INVALID_PARAMETER;
	if (found->type != REG_MULTI_SZ || (entry->Flags & RTL_QUERY_REGISTRY_NOEXPAND))
		return call(entry, found->type, found->data, found->size_bytes, context);
	/* Each string separately; the list ends with an empty string, or with the value. */
	while (NT_SUCCESS(status) && left && *at) {
		size_t count = 0;

		while (count < left && at[count])
			count++;
		count += count < left; /* with the terminator */
		status = call(entry, REG_SZ, at, (ULONG)(count * sizeof(WCHAR)), context);
		at += count;
		left -= count;
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
	char name[NT_VALUE_NAME_BYTES] = "";
	struct nt_value *value = NULL;
	struct found found = {0};
	NTSTATUS status;

	if (entry->Flags & not_supported)
		return nt_not_supported(nt, "RtlQueryRegistryValues",
					"subkeys and deletion by a query table");
	if (!entry->Name) {
		if (entry->Flags & RTL_QUERY_REGISTRY_DIRECT)
			return STATUS_INVALID_PARAMETER;
		return entry->Flags & RTL_QUERY_REGISTRY_NOVALUE
			       ? call(entry, REG_NONE, NULL, 0, context)
			       : nt_not_supported(nt, "RtlQueryRegistryValues",
						  "entries without a name");
	}
	if (!nt_narrow(name, sizeof(name), entry->Name,
		       wide_bytes(entry->Name) / sizeof(WCHAR) - 1))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	status = nt_registry_copy(nt, key, name, &value);
	if (NT_SUCCESS(status))
		found = (struct found){
			.type = value->type, .size_bytes = value->size_bytes, .data = value->data};
	else if (status == STATUS_OBJECT_NAME_NOT_FOUND || status == STATUS_KEY_DELETED)
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

/* ---- by path ---- */

NTSTATUS RtlCheckRegistryKey(ULONG RelativeTo, PWSTR Path)
{
	struct vmm_nt *nt = vmm_nt_current();
	char key[NT_KEY_BYTES];
	NTSTATUS status;

	nt_limit(nt, "RtlCheckRegistryKey", PASSIVE_LEVEL);
	status = base_path(nt, RelativeTo, Path, key);
	if (NT_SUCCESS(status) && !nt_registry_has_key(nt, key))
		status = STATUS_OBJECT_NAME_NOT_FOUND;
	return status;
}

NTSTATUS RtlCreateRegistryKey(ULONG RelativeTo, PWSTR Path)
{
	struct vmm_nt *nt = vmm_nt_current();
	char key[NT_KEY_BYTES];
	NTSTATUS status;

	nt_limit(nt, "RtlCreateRegistryKey", PASSIVE_LEVEL);
	status = base_path(nt, RelativeTo, Path, key);
	return NT_SUCCESS(status) ? nt_registry_create(nt, key, NULL) : status;
}

NTSTATUS RtlWriteRegistryValue(ULONG RelativeTo, PCWSTR Path, PCWSTR ValueName, ULONG ValueType,
			       PVOID ValueData, ULONG ValueLength)
{
	struct vmm_nt *nt = vmm_nt_current();
	char key[NT_KEY_BYTES], name[NT_VALUE_NAME_BYTES] = "";
	NTSTATUS status;

	nt_limit(nt, "RtlWriteRegistryValue", PASSIVE_LEVEL);
	status = base_path(nt, RelativeTo, Path, key);
	/* Unlike ZwSetValueKey, this routine makes the key. */
	if (NT_SUCCESS(status) && !(RelativeTo & RTL_REGISTRY_HANDLE))
		status = nt_registry_create(nt, key, NULL);
	if (!NT_SUCCESS(status))
		return status;
	if ((ValueLength && !ValueData) ||
	    (ValueName && !nt_narrow(name, sizeof(name), ValueName, nt_wide_length(ValueName))))
		return STATUS_INVALID_PARAMETER;
	return nt_registry_set(nt, key, name, ValueType, ValueData, ValueLength);
}

NTSTATUS RtlDeleteRegistryValue(ULONG RelativeTo, PCWSTR Path, PCWSTR ValueName)
{
	struct vmm_nt *nt = vmm_nt_current();
	char key[NT_KEY_BYTES], name[NT_VALUE_NAME_BYTES] = "";
	NTSTATUS status;

	nt_limit(nt, "RtlDeleteRegistryValue", PASSIVE_LEVEL);
	status = base_path(nt, RelativeTo, Path, key);
	if (!NT_SUCCESS(status))
		return status;
	if (!ValueName || !nt_narrow(name, sizeof(name), ValueName, nt_wide_length(ValueName)))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	status = nt_registry_unset(nt, key, name);
	return status == STATUS_KEY_DELETED ? STATUS_OBJECT_NAME_NOT_FOUND : status;
}
