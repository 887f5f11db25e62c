/* SPDX-License-Identifier: MIT */
/*
 * Type QUERYREGISTRY of D3DKMTQueryAdapterInfo: values of the keys that the miniport reads, and the
 * folder of the user-mode driver. A buffer that is too small is a success that returns the size
 * needed (REG-01).
 */
#include "doors/kmt/kmt_private.h"

#include <string.h>

enum { STRING_TYPE = 1, DWORD_TYPE = 4, QWORD_TYPE = 11 }; /* REG_SZ, REG_DWORD, REG_QWORD */
#define HEADER offsetof(D3DDDI_QUERYREGISTRY_INFO, OutputDword)

struct registry_query {
	const struct vmm_process *process;
	const struct vmm_adapter *adapter;
	const D3DKMT_QUERYADAPTERINFO *args;
	D3DDDI_QUERYREGISTRY_INFO info; /* the caller's record, read once */
};

static NTSTATUS refuse_query(const struct registry_query *q, const char *rule, const char *what,
			     uint64_t value)
{
	return vmm_refuse_rule(q->adapter->observe, STATUS_INVALID_PARAMETER, rule, q->process->id,
			       q->args->hAdapter,
			       "D3DKMTQueryAdapterInfo: QUERYREGISTRY: %s (%llu)", what,
			       (unsigned long long)value);
}

static NTSTATUS read_info(struct registry_query *q)
{
	const D3DKMT_QUERYADAPTERINFO *args = q->args;

	if (!args->pPrivateDriverData || args->PrivateDriverDataSize < sizeof(q->info))
		return refuse_query(q, "QAI-01", "the buffer is NULL or smaller than the record",
				    args->PrivateDriverDataSize);
	memcpy(&q->info, args->pPrivateDriverData, sizeof(q->info));
	if ((uint32_t)q->info.QueryType >= D3DDDI_QUERYREGISTRY_MAX)
		return refuse_query(q, "REG-03", "unknown QueryType", (uint32_t)q->info.QueryType);
	if (q->info.QueryFlags.Reserved)
		return refuse_query(q, "REG-03", "reserved QueryFlags are set",
				    q->info.QueryFlags.Value);
	return vmm_kmt_check_physical_adapter(q->process, q->adapter, q->info.PhysicalAdapterIndex);
}

static NTSTATUS missing(const struct registry_query *q, const char *what)
{
	return vmm_refuse_reason(q->adapter->observe, STATUS_OBJECT_NAME_NOT_FOUND, q->process->id,
				 q->args->hAdapter, "REG-03: the registry has no value \"%s\"",
				 what);
}

static NTSTATUS return_value(const struct registry_query *q, uint32_t type, const void *value,
			     uint32_t bytes)
{
	D3DDDI_QUERYREGISTRY_INFO *to = q->args->pPrivateDriverData;
	bool fits = bytes <= q->args->PrivateDriverDataSize - HEADER;

	to->ValueType = type;
	to->OutputValueSize = bytes;
	to->Status = fits ? D3DDDI_QUERYREGISTRY_STATUS_SUCCESS
			  : D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW; /* REG-01, REG-02 */
	if (fits)
		memcpy((char *)to + HEADER, value, bytes);
	return STATUS_SUCCESS;
}

static char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Finds a value, case-insensitively. Both keys have the same values. */
static const struct vmm_adapter_value *find(const struct vmm_adapter *adapter, const char *name)
{
	const struct vmm_adapter_identity *identity = &adapter->identity;

	for (uint32_t i = identity->value_count; i--;) { /* of equal names, the last counts */
		const char *a = identity->values[i].name, *b = name;

		while (*a && fold(*a) == fold(*b))
			a++, b++;
		if (fold(*a) == fold(*b))
			return &identity->values[i];
	}
	return NULL;
}

static NTSTATUS return_number(const struct registry_query *q)
{
	char name[sizeof(((struct vmm_adapter_value *)0)->name)];
	size_t i;

	for (i = 0; i < sizeof(name); i++) {
		WCHAR c = q->info.ValueName[i];

		if ((uint32_t)c > 0x7E) /* value names are ASCII */
			return missing(q, "(not ASCII)");
		name[i] = (char)c;
		if (!c)
			break;
	}
	if (i == sizeof(name))
		return missing(q, "(longer than any)");
	const struct vmm_adapter_value *found = find(q->adapter, name);

	if (!found)
		return missing(q, name);
	return found->value > UINT32_MAX
		       ? return_value(q, QWORD_TYPE, &found->value, sizeof(uint64_t))
		       : return_value(q, DWORD_TYPE, &(uint32_t){(uint32_t)found->value},
				      sizeof(uint32_t));
}

/* REG-04 */
static NTSTATUS return_store(const struct registry_query *q)
{
	const char *path = q->adapter->identity.driver_store;
	WCHAR wide[sizeof(q->adapter->identity.driver_store)];
	size_t length = strlen(path);

	for (size_t i = 0; i <= length; i++)
		wide[i] = (WCHAR)(unsigned char)path[i];
	return return_value(q, STRING_TYPE, wide, (uint32_t)((length + 1) * sizeof(wide[0])));
}

NTSTATUS vmm_kmt_query_registry(const struct vmm_process *process,
				const struct vmm_adapter *adapter,
				const D3DKMT_QUERYADAPTERINFO *args)
{
	struct registry_query q = {.process = process, .adapter = adapter, .args = args};
	NTSTATUS status = read_info(&q);

	if (!NT_SUCCESS(status))
		return status;
	switch (q.info.QueryType) {
	case D3DDDI_QUERYREGISTRY_SERVICEKEY:
	case D3DDDI_QUERYREGISTRY_ADAPTERKEY:
		return return_number(&q);
	case D3DDDI_QUERYREGISTRY_DRIVERSTOREPATH:
		return return_store(&q);
	default:
		return missing(&q, "the path of the driver's image");
	}
}
