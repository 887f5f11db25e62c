/* SPDX-License-Identifier: MIT */
/*
 * The services for registry keys. A handle holds the key's path and the access rights that it was
 * opened with, so a handle of a deleted key finds none. Stateless.
 */
#include "nt/nt_registry.h"

#include <string.h>

/* ---- handles ---- */

static ACCESS_MASK granted(ACCESS_MASK wanted)
{
	ACCESS_MASK access = wanted & KEY_ALL_ACCESS;

	if (wanted & (MAXIMUM_ALLOWED | GENERIC_ALL))
		access |= KEY_ALL_ACCESS;
	if (wanted & (GENERIC_READ | GENERIC_EXECUTE))
		access |= KEY_READ;
	if (wanted & GENERIC_WRITE)
		access |= KEY_WRITE;
	return access;
}

NTSTATUS nt_key_open(struct vmm_nt *nt, const char *path, ACCESS_MASK access, HANDLE *handle)
{
	struct nt_key *key = vmm_calloc(1, sizeof(*key));
	NTSTATUS status;

	if (!key)
		return STATUS_INSUFFICIENT_RESOURCES;
	nt_object_prepare(&key->object, OBJECT_KEY, key);
	key->access = granted(access);
	strcpy(key->path, path);
	status = nt_handle_open(nt, &key->object, handle);
	if (!NT_SUCCESS(status))
		vmm_free(key);
	return status;
}

NTSTATUS nt_key_path(struct vmm_nt *nt, HANDLE handle, ACCESS_MASK access, char path[NT_KEY_BYTES])
{
	struct nt_key *key = (struct nt_key *)nt_handle_get(nt, handle, OBJECT_KEY);
	NTSTATUS status = STATUS_SUCCESS;

	if (!key)
		return STATUS_INVALID_HANDLE;
	if ((key->access & access) != access)
		status = STATUS_ACCESS_DENIED;
	strcpy(path, key->path);
	nt_object_put(nt, &key->object);
	return status;
}

/* Builds the full path of a key name, which may be relative to an open key. */
static NTSTATUS full_path(struct vmm_nt *nt, const OBJECT_ATTRIBUTES *attributes,
			  ACCESS_MASK access, char path[NT_KEY_BYTES])
{
	const UNICODE_STRING *name = attributes->ObjectName;
	NTSTATUS status;

	path[0] = 0;
	if (attributes->RootDirectory) {
		status = nt_key_path(nt, attributes->RootDirectory, access, path);
		if (!NT_SUCCESS(status))
			return status;
		/* An empty name opens the key itself once more. */
		if (!name || !name->Length)
			return STATUS_SUCCESS;
		if (name->Buffer && name->Buffer[0] == '\\')
			return STATUS_OBJECT_PATH_SYNTAX_BAD; /* relative names have none there */
		if (strlen(path) + 1 < NT_KEY_BYTES)
			strcat(path, "\\");
	}
	if (!name || !name->Buffer ||
	    !nt_narrow(path, NT_KEY_BYTES, name->Buffer, name->Length / sizeof(WCHAR)))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	if (path[0] != '\\')
		return STATUS_OBJECT_PATH_SYNTAX_BAD;
	nt_key_trim(path);
	return STATUS_SUCCESS;
}

NTSTATUS ZwOpenKey(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
		   POBJECT_ATTRIBUTES ObjectAttributes)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES];
	NTSTATUS status;

	nt_limit(nt, "ZwOpenKey", PASSIVE_LEVEL);
	if (!KeyHandle || !ObjectAttributes)
		return STATUS_INVALID_PARAMETER;
	status = full_path(nt, ObjectAttributes, 0, path);
	if (!NT_SUCCESS(status))
		return status;
	if (!nt_registry_has_key(nt, path))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	return nt_key_open(nt, path, DesiredAccess, KeyHandle);
}

NTSTATUS ZwOpenKeyEx(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
		     POBJECT_ATTRIBUTES ObjectAttributes, ULONG OpenOptions)
{
	(void)OpenOptions; /* links and backup rights: there are none */
	return ZwOpenKey(KeyHandle, DesiredAccess, ObjectAttributes);
}

NTSTATUS ZwCreateKey(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
		     POBJECT_ATTRIBUTES ObjectAttributes, ULONG TitleIndex, PUNICODE_STRING Class,
		     ULONG CreateOptions, PULONG Disposition)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES];
	NTSTATUS status;
	bool created;

	(void)TitleIndex, (void)Class;
	nt_limit(nt, "ZwCreateKey", PASSIVE_LEVEL);
	if (!KeyHandle || !ObjectAttributes)
		return STATUS_INVALID_PARAMETER;
	if (CreateOptions & REG_OPTION_CREATE_LINK)
		return nt_not_supported(nt, "ZwCreateKey", "symbolic links of the registry");
	status = full_path(nt, ObjectAttributes, 0, path);
	if (!NT_SUCCESS(status))
		return status;
	/* A new subkey needs that right of the root's handle. */
	if (ObjectAttributes->RootDirectory && !nt_registry_has_key(nt, path))
		status = full_path(nt, ObjectAttributes, KEY_CREATE_SUB_KEY, path);
	if (NT_SUCCESS(status))
		status = nt_registry_create(nt, path, &created);
	if (NT_SUCCESS(status))
		status = nt_key_open(nt, path, DesiredAccess, KeyHandle);
	if (NT_SUCCESS(status) && Disposition)
		*Disposition = created ? REG_CREATED_NEW_KEY : REG_OPENED_EXISTING_KEY;
	return status;
}

NTSTATUS ZwDeleteKey(HANDLE KeyHandle)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES];
	NTSTATUS status;

	nt_limit(nt, "ZwDeleteKey", PASSIVE_LEVEL);
	status = nt_key_path(nt, KeyHandle, DELETE, path);
	return NT_SUCCESS(status) ? nt_registry_delete(nt, path) : status;
}

NTSTATUS ZwFlushKey(HANDLE KeyHandle)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES];

	nt_limit(nt, "ZwFlushKey", PASSIVE_LEVEL);
	return nt_key_path(nt, KeyHandle, 0, path); /* nothing is stored on disk */
}

/* ---- information ---- */

NTSTATUS nt_key_answer(const void *answer, uint32_t size, uint32_t header, void *buffer,
		       uint32_t length, uint32_t *result_length)
{
	*result_length = size;
	if (!buffer || length < header)
		return STATUS_BUFFER_TOO_SMALL;
	memcpy(buffer, answer, vmm_min_u64(size, length));
	return length < size ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

union key_information {
	KEY_BASIC_INFORMATION basic;
	KEY_NODE_INFORMATION node;
	KEY_FULL_INFORMATION full;
	KEY_NAME_INFORMATION name;
	KEY_CACHED_INFORMATION cached;
	char bytes[sizeof(KEY_NODE_INFORMATION) + NT_KEY_BYTES * sizeof(WCHAR)];
};

/* Appends the name in UTF-16; returns its bytes. */
static ULONG append(WCHAR *to, const char *name)
{
	ULONG length = 0;

	while (name[length]) {
		to[length] = (WCHAR)(unsigned char)name[length];
		length++;
	}
	return length * (ULONG)sizeof(WCHAR);
}

static void fill_full(KEY_FULL_INFORMATION *full, const struct nt_key_description *d)
{
	full->ClassOffset = UINT32_MAX; /* no class */
	full->SubKeys = d->subkeys;
	full->MaxNameLen = d->longest_subkey * (ULONG)sizeof(WCHAR);
	full->Values = d->values;
	full->MaxValueNameLen = d->longest_value_name * (ULONG)sizeof(WCHAR);
	full->MaxValueDataLen = d->largest_data;
}

static void fill_cached(KEY_CACHED_INFORMATION *cached, const struct nt_key_description *d,
			const char *name)
{
	cached->SubKeys = d->subkeys;
	cached->MaxNameLen = d->longest_subkey * (ULONG)sizeof(WCHAR);
	cached->Values = d->values;
	cached->MaxValueNameLen = d->longest_value_name * (ULONG)sizeof(WCHAR);
	cached->MaxValueDataLen = d->largest_data;
	cached->NameLength = (ULONG)(strlen(name) * sizeof(WCHAR));
}

static NTSTATUS answer_key(struct vmm_nt *nt, const char *path, KEY_INFORMATION_CLASS class,
			   void *buffer, ULONG length, PULONG result_length)
{
	union key_information answer = {.bytes = {0}};
	struct nt_key_description description;
	NTSTATUS status = nt_registry_describe(nt, path, &description);
	ULONG header, size;

	if (!NT_SUCCESS(status))
		return status;
	if (class != KeyNameInformation)
		answer.basic.LastWriteTime.QuadPart = (LONGLONG)description.written;
	switch (class) {
	case KeyBasicInformation:
		header = offsetof(KEY_BASIC_INFORMATION, Name);
		answer.basic.NameLength = append(answer.basic.Name, nt_key_name(path));
		size = header + answer.basic.NameLength;
		break;
	case KeyNodeInformation:
		header = offsetof(KEY_NODE_INFORMATION, Name);
		answer.node.ClassOffset = UINT32_MAX; /* no class */
		answer.node.NameLength = append(answer.node.Name, nt_key_name(path));
		size = header + answer.node.NameLength;
		break;
	case KeyFullInformation:
		header = size = offsetof(KEY_FULL_INFORMATION, Class);
		fill_full(&answer.full, &description);
		break;
	case KeyNameInformation:
		header = offsetof(KEY_NAME_INFORMATION, Name);
		answer.name.NameLength = append(answer.name.Name, path);
		size = header + answer.name.NameLength;
		break;
	case KeyCachedInformation:
		header = size = sizeof(KEY_CACHED_INFORMATION);
		fill_cached(&answer.cached, &description, nt_key_name(path));
		break;
	default:
		return STATUS_INVALID_PARAMETER;
	}
	return nt_key_answer(&answer, size, header, buffer, length, result_length);
}

NTSTATUS ZwQueryKey(HANDLE KeyHandle, KEY_INFORMATION_CLASS KeyInformationClass,
		    PVOID KeyInformation, ULONG Length, PULONG ResultLength)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES];
	NTSTATUS status;

	nt_limit(nt, "ZwQueryKey", PASSIVE_LEVEL);
	/* The name may be asked for with any right. */
	status = nt_key_path(nt, KeyHandle,
			     KeyInformationClass == KeyNameInformation ? 0 : KEY_QUERY_VALUE, path);
	if (!NT_SUCCESS(status))
		return status;
	if (!ResultLength)
		return STATUS_INVALID_PARAMETER;
	return answer_key(nt, path, KeyInformationClass, KeyInformation, Length, ResultLength);
}

NTSTATUS ZwEnumerateKey(HANDLE KeyHandle, ULONG Index, KEY_INFORMATION_CLASS KeyInformationClass,
			PVOID KeyInformation, ULONG Length, PULONG ResultLength)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES], subkey[NT_KEY_BYTES];
	NTSTATUS status;

	nt_limit(nt, "ZwEnumerateKey", PASSIVE_LEVEL);
	if (KeyInformationClass > KeyFullInformation || !ResultLength)
		return STATUS_INVALID_PARAMETER;
	status = nt_key_path(nt, KeyHandle, KEY_ENUMERATE_SUB_KEYS, path);
	if (NT_SUCCESS(status))
		status = nt_registry_subkey(nt, path, Index, subkey);
	if (!NT_SUCCESS(status))
		return status;
	return answer_key(nt, subkey, KeyInformationClass, KeyInformation, Length, ResultLength);
}
