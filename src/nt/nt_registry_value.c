/* SPDX-License-Identifier: MIT */
/* The services for the values of an open registry key. Stateless. */
#include "nt/nt_registry.h"

#include <string.h>

#define NAME_MAX ((NT_VALUE_NAME_BYTES - 1) * sizeof(WCHAR))

static ULONG name_bytes(const struct nt_value *value)
{
	return (ULONG)(strlen(value->name) * sizeof(WCHAR));
}

static void put_name(WCHAR *to, const char *name)
{
	for (; *name; name++)
		*to++ = (WCHAR)(unsigned char)*name;
}

static ULONG put_full(const struct nt_value *value, KEY_VALUE_FULL_INFORMATION *full,
		      uint64_t alignment)
{
	full->Type = value->type;
	full->NameLength = name_bytes(value);
	full->DataLength = value->size_bytes;
	full->DataOffset = (ULONG)vmm_align_up(
		offsetof(KEY_VALUE_FULL_INFORMATION, Name) + full->NameLength, alignment);
	put_name(full->Name, value->name);
	memcpy((char *)full + full->DataOffset, value->data, value->size_bytes);
	return full->DataOffset + value->size_bytes;
}

/* Builds the whole answer, then copies what fits. */
static NTSTATUS answer_value(const struct nt_value *value, KEY_VALUE_INFORMATION_CLASS class,
			     void *buffer, ULONG length, PULONG result_length)
{
	void *answer = vmm_calloc(1, sizeof(KEY_VALUE_FULL_INFORMATION) + NAME_MAX + 8 +
					     value->size_bytes);
	KEY_VALUE_PARTIAL_INFORMATION *partial = answer;
	KEY_VALUE_PARTIAL_INFORMATION_ALIGN64 *aligned = answer;
	KEY_VALUE_BASIC_INFORMATION *basic = answer;
	ULONG header = offsetof(KEY_VALUE_FULL_INFORMATION, Name), size;
	NTSTATUS status;

	if (!answer)
		return STATUS_INSUFFICIENT_RESOURCES;
	switch (class) {
	case KeyValueBasicInformation:
		header = offsetof(KEY_VALUE_BASIC_INFORMATION, Name);
		basic->Type = value->type;
		basic->NameLength = name_bytes(value);
		put_name(basic->Name, value->name);
		size = header + basic->NameLength;
		break;
	case KeyValuePartialInformation:
		header = offsetof(KEY_VALUE_PARTIAL_INFORMATION, Data);
		partial->Type = value->type;
		partial->DataLength = value->size_bytes;
		memcpy(partial->Data, value->data, value->size_bytes);
		size = header + value->size_bytes;
		break;
	case KeyValuePartialInformationAlign64:
		header = offsetof(KEY_VALUE_PARTIAL_INFORMATION_ALIGN64, Data);
		aligned->Type = value->type;
		aligned->DataLength = value->size_bytes;
		memcpy(aligned->Data, value->data, value->size_bytes);
		size = header + value->size_bytes;
		break;
	default:
		size = put_full(value, answer, class == KeyValueFullInformation ? 4 : 8);
		break;
	}
	status = nt_key_answer(answer, size, header, buffer, length, result_length);
	vmm_free(answer);
	return status;
}

/* An absent name is that of the default value: empty. */
static bool value_name(const UNICODE_STRING *wide, char name[NT_VALUE_NAME_BYTES])
{
	name[0] = 0;
	return !wide || !wide->Length ||
	       nt_narrow(name, NT_VALUE_NAME_BYTES, wide->Buffer, wide->Length / sizeof(WCHAR));
}

NTSTATUS ZwQueryValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName,
			 KEY_VALUE_INFORMATION_CLASS KeyValueInformationClass,
			 PVOID KeyValueInformation, ULONG Length, PULONG ResultLength)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES], name[NT_VALUE_NAME_BYTES];
	struct nt_value *value = NULL;
	NTSTATUS status;

	nt_limit(nt, "ZwQueryValueKey", PASSIVE_LEVEL);
	if (KeyValueInformationClass > KeyValuePartialInformationAlign64)
		return STATUS_INVALID_PARAMETER;
	status = nt_key_path(nt, KeyHandle, KEY_QUERY_VALUE, path);
	if (!NT_SUCCESS(status))
		return status;
	if (!ValueName || !ResultLength)
		return STATUS_INVALID_PARAMETER;
	if (!value_name(ValueName, name))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	status = nt_registry_copy(nt, path, name, &value);
	if (NT_SUCCESS(status))
		status = answer_value(value, KeyValueInformationClass, KeyValueInformation, Length,
				      ResultLength);
	vmm_free(value);
	return status;
}

NTSTATUS ZwEnumerateValueKey(HANDLE KeyHandle, ULONG Index,
			     KEY_VALUE_INFORMATION_CLASS KeyValueInformationClass,
			     PVOID KeyValueInformation, ULONG Length, PULONG ResultLength)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_value *value = NULL;
	char path[NT_KEY_BYTES];
	NTSTATUS status;

	nt_limit(nt, "ZwEnumerateValueKey", PASSIVE_LEVEL);
	if (KeyValueInformationClass > KeyValuePartialInformationAlign64 || !ResultLength)
		return STATUS_INVALID_PARAMETER;
	status = nt_key_path(nt, KeyHandle, KEY_QUERY_VALUE, path);
	if (NT_SUCCESS(status))
		status = nt_registry_copy_at(nt, path, Index, &value);
	if (NT_SUCCESS(status))
		status = answer_value(value, KeyValueInformationClass, KeyValueInformation, Length,
				      ResultLength);
	vmm_free(value);
	return status;
}

NTSTATUS ZwSetValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName, ULONG TitleIndex, ULONG Type,
		       PVOID Data, ULONG DataSize)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES], name[NT_VALUE_NAME_BYTES];
	NTSTATUS status;

	(void)TitleIndex;
	nt_limit(nt, "ZwSetValueKey", PASSIVE_LEVEL);
	status = nt_key_path(nt, KeyHandle, KEY_SET_VALUE, path);
	if (!NT_SUCCESS(status))
		return status;
	if (DataSize && !Data)
		return STATUS_INVALID_PARAMETER;
	if (!value_name(ValueName, name))
		return nt_not_supported(nt, "ZwSetValueKey",
					"names that are not ASCII or longer than 127 characters");
	return nt_registry_set(nt, path, name, Type, Data, DataSize);
}

NTSTATUS ZwDeleteValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName)
{
	struct vmm_nt *nt = vmm_nt_current();
	char path[NT_KEY_BYTES], name[NT_VALUE_NAME_BYTES];
	NTSTATUS status;

	nt_limit(nt, "ZwDeleteValueKey", PASSIVE_LEVEL);
	status = nt_key_path(nt, KeyHandle, KEY_SET_VALUE, path);
	if (!NT_SUCCESS(status))
		return status;
	if (!value_name(ValueName, name))
		return STATUS_OBJECT_NAME_NOT_FOUND;
	return nt_registry_unset(nt, path, name);
}
