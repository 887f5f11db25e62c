/* SPDX-License-Identifier: MIT */
/*
 * The registry as drivers see it: values that the port set, returned by ZwOpenKey, ZwQueryValueKey
 * and (in nt_registry_query.c) RtlQueryRegistryValues. Key and value names are ASCII and compared
 * case-insensitively. A key exists while it has a value. Guarded by the registry lock; values are
 * copied out.
 */
#include "nt/nt_registry.h"

#include <string.h>

void nt_registry_init(struct vmm_nt *nt)
{
	vmm_os_mutex_init(&nt->registry, nt->os, VMM_NT_RANK, "kernel registry");
	vmm_list_init(&nt->values);
}

void nt_registry_finish(struct vmm_nt *nt)
{
	while (!vmm_list_empty(&nt->values)) {
		struct nt_value *value = vmm_container_of(nt->values.next, struct nt_value, link);

		vmm_list_remove(&value->link);
		vmm_free(value);
	}
	vmm_os_mutex_finish(&nt->registry);
}

/* ---- names ---- */

static char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool same_name(const char *a, const char *b)
{
	while (*a && fold(*a) == fold(*b))
		a++, b++;
	return fold(*a) == fold(*b);
}

bool nt_narrow(char *text, size_t size, const WCHAR *wide, size_t length)
{
	size_t used = strlen(text);

	if (length >= size - used)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!wide[i] || wide[i] > 0x7E)
			return false;
		text[used + i] = (char)wide[i];
	}
	text[used + length] = 0;
	return true;
}

/* ---- values; caller holds the registry lock ---- */

static struct nt_value *find_locked(struct vmm_nt *nt, const char *key, const char *name)
	VMM_REQUIRES(nt_registry_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->registry);
	vmm_list_for_each (pos, &nt->values) {
		struct nt_value *value = vmm_container_of(pos, struct nt_value, link);

		if (same_name(value->key, key) && (!name || same_name(value->name, name)))
			return value;
	}
	return NULL;
}

bool nt_registry_has_key(struct vmm_nt *nt, const char *key)
{
	bool found;

	nt_registry_lock(nt);
	found = find_locked(nt, key, NULL);
	nt_registry_unlock(nt);
	return found;
}

NTSTATUS nt_registry_copy(struct vmm_nt *nt, const char *key, const char *name,
			  struct nt_value **copy)
{
	NTSTATUS status = STATUS_OBJECT_NAME_NOT_FOUND;
	struct nt_value *value;

	nt_registry_lock(nt);
	value = find_locked(nt, key, name);
	if (value) {
		*copy = vmm_calloc(1, sizeof(**copy) + value->size_bytes);
		status = *copy ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
		if (*copy)
			memcpy(*copy, value, sizeof(*value) + value->size_bytes);
	}
	nt_registry_unlock(nt);
	return status;
}

/* ---- for the modules above ---- */

vmm_status vmm_nt_registry_set(struct vmm_nt *nt, const char *key, const char *name, uint32_t type,
			       const void *data, uint32_t size_bytes)
{
	struct nt_value *value, *before;

	if (strlen(key) >= sizeof(value->key) || strlen(name) >= sizeof(value->name))
		return VMM_INVALID_PARAMETER;
	value = vmm_calloc(1, sizeof(*value) + size_bytes);
	if (!value)
		return VMM_NO_MEMORY;
	strcpy(value->key, key);
	strcpy(value->name, name);
	value->type = type;
	value->size_bytes = size_bytes;
	if (size_bytes)
		memcpy(value->data, data, size_bytes);
	nt_registry_lock(nt);
	before = find_locked(nt, key, name);
	if (before)
		vmm_list_remove(&before->link);
	vmm_list_push_back(&nt->values, &value->link);
	nt_registry_unlock(nt);
	vmm_free(before);
	return VMM_OK;
}

vmm_status vmm_nt_registry_set_number(struct vmm_nt *nt, const char *key, const char *name,
				      uint64_t value)
{
	uint32_t low = (uint32_t)value;

	if (value > UINT32_MAX)
		return vmm_nt_registry_set(nt, key, name, REG_QWORD, &value, sizeof(value));
	return vmm_nt_registry_set(nt, key, name, REG_DWORD, &low, sizeof(low));
}

vmm_status vmm_nt_registry_set_string(struct vmm_nt *nt, const char *key, const char *name,
				      const char *value)
{
	size_t length = strlen(value);
	WCHAR *wide = vmm_calloc(length + 1, sizeof(*wide));
	vmm_status status;

	if (!wide)
		return VMM_NO_MEMORY;
	for (size_t i = 0; i < length; i++)
		wide[i] = (WCHAR)(unsigned char)value[i];
	status = vmm_nt_registry_set(nt, key, name, REG_SZ, wide,
				     (uint32_t)((length + 1) * sizeof(*wide)));
	vmm_free(wide);
	return status;
}

void vmm_nt_registry_remove_key(struct vmm_nt *nt, const char *key)
{
	struct nt_value *value;

	do {
		nt_registry_lock(nt);
		value = find_locked(nt, key, NULL);
		if (value)
			vmm_list_remove(&value->link);
		nt_registry_unlock(nt);
		vmm_free(value);
	} while (value);
}

/* ---- services ---- */

/* Builds the full path of a key name, which may be relative to an open key. */
static NTSTATUS full_path(struct vmm_nt *nt, const OBJECT_ATTRIBUTES *attributes,
			  char path[NT_KEY_BYTES])
{
	const UNICODE_STRING *name = attributes->ObjectName;
	struct nt_object *root;

	path[0] = 0;
	if (attributes->RootDirectory) {
		root = nt_handle_get(nt, attributes->RootDirectory, OBJECT_KEY);
		if (!root)
			return STATUS_INVALID_HANDLE;
		strcpy(path, ((struct nt_key *)root)->path);
		nt_object_put(nt, root);
		if (strlen(path) + 1 < NT_KEY_BYTES)
			strcat(path, "\\");
	}
	if (!name || !name->Buffer ||
	    !nt_narrow(path, NT_KEY_BYTES, name->Buffer, name->Length / sizeof(WCHAR)))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	return STATUS_SUCCESS;
}

NTSTATUS ZwOpenKey(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
		   POBJECT_ATTRIBUTES ObjectAttributes)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES];
	struct nt_key *key;
	NTSTATUS status;

	(void)DesiredAccess;
	nt_limit(nt, "ZwOpenKey", PASSIVE_LEVEL);
	if (!KeyHandle || !ObjectAttributes)
		return STATUS_INVALID_PARAMETER;
	status = full_path(nt, ObjectAttributes, path);
	if (!NT_SUCCESS(status))
		return status;
	if (!nt_registry_has_key(nt, path))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	key = vmm_calloc(1, sizeof(*key));
	if (!key)
		return STATUS_INSUFFICIENT_RESOURCES;
	nt_header_init(&key->object.header, OBJECT_KEY, false);
	strcpy(key->path, path);
	status = nt_handle_open(nt, &key->object, KeyHandle);
	if (!NT_SUCCESS(status))
		vmm_free(key);
	return status;
}

static NTSTATUS answer_partial(const struct nt_value *value, PVOID buffer, ULONG length,
			       PULONG result_length)
{
	const ULONG header = offsetof(KEY_VALUE_PARTIAL_INFORMATION, Data);
	KEY_VALUE_PARTIAL_INFORMATION *answer = buffer;
	ULONG space;

	*result_length = header + value->size_bytes;
	if (!buffer || length < header)
		return STATUS_BUFFER_TOO_SMALL;
	answer->TitleIndex = 0;
	answer->Type = value->type;
	answer->DataLength = value->size_bytes;
	space = length - header;
	memcpy(answer->Data, value->data, vmm_min_u64(space, value->size_bytes));
	return space < value->size_bytes ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

NTSTATUS ZwQueryValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName,
			 KEY_VALUE_INFORMATION_CLASS KeyValueInformationClass,
			 PVOID KeyValueInformation, ULONG Length, PULONG ResultLength)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES], name[sizeof(((struct nt_value *)0)->name)] = "";
	struct nt_object *key;
	struct nt_value *value = NULL;
	NTSTATUS status;

	nt_limit(nt, "ZwQueryValueKey", PASSIVE_LEVEL);
	if (KeyValueInformationClass > KeyValuePartialInformation)
		return STATUS_INVALID_PARAMETER;
	if (KeyValueInformationClass != KeyValuePartialInformation)
		return STATUS_NOT_SUPPORTED;
	key = nt_handle_get(nt, KeyHandle, OBJECT_KEY);
	if (!key)
		return STATUS_INVALID_HANDLE;
	strcpy(path, ((struct nt_key *)key)->path);
	nt_object_put(nt, key);
	if (!ValueName || !ResultLength)
		return STATUS_INVALID_PARAMETER;
	if (!nt_narrow(name, sizeof(name), ValueName->Buffer, ValueName->Length / sizeof(WCHAR)))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	status = nt_registry_copy(nt, path, name, &value);
	if (NT_SUCCESS(status))
		status = answer_partial(value, KeyValueInformation, Length, ResultLength);
	vmm_free(value);
	return status;
}
