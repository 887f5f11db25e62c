/* SPDX-License-Identifier: MIT */
/* The states of an adapter: IsDriverUpdateInProgress and the budget of the calling process. */
#include "dxcore/dxcore_private.h"

#include <string.h>

enum { LAST_STATE = DXCoreAdapterState_AdapterMemoryFrequencyHertz };

static const struct vmm_dxcore_facts *facts_of(IDXCoreAdapter1 *self)
{
	return &((struct vmm_dxcore_adapter *)self)->facts;
}

bool vmm_dxcore_has_state(IDXCoreAdapter1 *self, DXCoreAdapterState state)
{
	switch ((uint32_t)state) {
	case DXCoreAdapterState_IsDriverUpdateInProgress:
		return true;
	case DXCoreAdapterState_AdapterMemoryBudget:
		/* Budgets came with residency lists (RES-10). */
		return facts_of(self)->kmd_model >= KMT_DRIVERVERSION_WDDM_2_0;
	default:
		return false;
	}
}

/* DXC-19, DXC-23: the rule of the function. */
static HRESULT check_state(const char *rule, const char *function, uint32_t state, bool supported)
{
	if (state > LAST_STATE)
		return vmm_dxcore_refuse_rule(DXGI_ERROR_INVALID_CALL, rule,
					      "%s: state %u is unknown: the last is %u", function,
					      state, LAST_STATE);
	if (!supported)
		return vmm_dxcore_refuse_reason(DXGI_ERROR_UNSUPPORTED, rule,
						"%s: the adapter does not support state %u",
						function, state);
	return S_OK;
}

static HRESULT check_buffer(const char *what, const void *buffer, size_t size, size_t needed)
{
	if (!buffer)
		return vmm_dxcore_refuse_rule(E_POINTER, "DXC-19",
					      "IDXCoreAdapter::QueryState: %s is NULL", what);
	if (size < needed)
		return vmm_dxcore_refuse_rule(
			E_INVALIDARG, "DXC-19",
			"IDXCoreAdapter::QueryState: %s has %zu bytes, %zu are needed", what, size,
			needed);
	return S_OK;
}

static NTSTATUS query_update(D3DKMT_HANDLE handle, uint8_t *updating)
{
	BOOL is = FALSE;
	NTSTATUS status =
		vmm_dxcore_query(handle, KMTQAITYPE_CHECKDRIVERUPDATESTATUS, &is, sizeof(is));

	*updating = is != FALSE;
	return status;
}

/* DXC-22 */
static NTSTATUS query_budget(D3DKMT_HANDLE handle,
			     const DXCoreAdapterMemoryBudgetNodeSegmentGroup *group,
			     DXCoreAdapterMemoryBudget *budget)
{
	D3DKMT_QUERYVIDEOMEMORYINFO info = {
		.hAdapter = handle,
		.MemorySegmentGroup = (D3DKMT_MEMORY_SEGMENT_GROUP)group->segmentGroup,
		.PhysicalAdapterIndex = group->nodeIndex};
	NTSTATUS status = D3DKMTQueryVideoMemoryInfo(&info);

	*budget = (DXCoreAdapterMemoryBudget){
		.budget = info.Budget,
		.currentUsage = info.CurrentUsage,
		.availableForReservation = info.AvailableForReservation,
		.currentReservation = info.CurrentReservation,
	};
	return status;
}

bool vmm_dxcore_budgets(struct vmm_dxcore_adapter *adapter, uint64_t budget[VMM_DXCORE_GROUPS])
{
	struct vmm_dxcore_adapters adapters;
	D3DKMT_HANDLE handle;
	NTSTATUS status = STATUS_SUCCESS;

	if (!vmm_dxcore_has_state(&adapter->interface, DXCoreAdapterState_AdapterMemoryBudget) ||
	    FAILED(vmm_dxcore_reach(adapter, &adapters, &handle)))
		return false;
	for (uint32_t i = 0; i < VMM_DXCORE_GROUPS && NT_SUCCESS(status); i++) {
		const DXCoreAdapterMemoryBudgetNodeSegmentGroup group = {
			.segmentGroup = (DXCoreSegmentGroup)i};
		DXCoreAdapterMemoryBudget now;

		status = query_budget(handle, &group, &now);
		budget[i] = now.budget;
	}
	vmm_dxcore_close(&adapters);
	return NT_SUCCESS(status);
}

struct request {
	uint32_t state;
	DXCoreAdapterMemoryBudgetNodeSegmentGroup group;
	union {
		uint8_t updating;
		DXCoreAdapterMemoryBudget budget;
	} answer;
	size_t answer_size;
};

static HRESULT ask(struct vmm_dxcore_adapter *adapter, struct request *request)
{
	struct vmm_dxcore_adapters adapters;
	D3DKMT_HANDLE handle;
	HRESULT result = vmm_dxcore_reach(adapter, &adapters, &handle);
	NTSTATUS status;

	if (FAILED(result))
		return vmm_dxcore_refuse_reason(
			result, "DXC-19",
			"IDXCoreAdapter::QueryState: state %u: the adapter with LUID 0x%x is gone, "
			"or another host's",
			request->state, adapter->facts.luid.LowPart);
	if (request->state == DXCoreAdapterState_AdapterMemoryBudget)
		status = query_budget(handle, &request->group, &request->answer.budget);
	else
		status = query_update(handle, &request->answer.updating);
	vmm_dxcore_close(&adapters);
	/* The D3DKMT function has reported which value of the input is out of range. */
	return status == STATUS_INVALID_PARAMETER ? E_INVALIDARG : vmm_dxcore_result(status);
}

HRESULT vmm_dxcore_query_state(IDXCoreAdapter1 *self, DXCoreAdapterState state, size_t input_size,
			       const void *input, size_t output_size, void *output)
{
	struct request request = {.state = state};
	HRESULT result = check_state("DXC-19", "IDXCoreAdapter::QueryState", state,
				     vmm_dxcore_has_state(self, state));

	if (FAILED(result))
		return result;
	bool has_input = request.state == DXCoreAdapterState_AdapterMemoryBudget;
	request.answer_size =
		has_input ? sizeof(request.answer.budget) : sizeof(request.answer.updating);
	result = check_buffer("outputBuffer", output, output_size, request.answer_size);
	if (SUCCEEDED(result) && has_input)
		result =
			check_buffer("inputStateDetails", input, input_size, sizeof(request.group));
	if (FAILED(result))
		return result;
	if (has_input)
		memcpy(&request.group, input, sizeof(request.group));
	result = ask((struct vmm_dxcore_adapter *)self, &request);
	if (FAILED(result))
		return result;
	memset(output, 0, output_size);
	memcpy(output, &request.answer, request.answer_size);
	return S_OK;
}

bool vmm_dxcore_can_set_state(IDXCoreAdapter1 *self, DXCoreAdapterState state)
{
	(void)self;
	(void)state;
	return false; /* the pages mark no state as one that can be set (DXC-23) */
}

HRESULT vmm_dxcore_set_state(IDXCoreAdapter1 *self, DXCoreAdapterState state, size_t details_size,
			     const void *details, size_t data_size, const void *data)
{
	(void)self;
	(void)details_size;
	(void)details;
	(void)data_size;
	(void)data;
	return check_state("DXC-23", "IDXCoreAdapter::SetState", state, false);
}
