/* SPDX-License-Identifier: MIT */
/* Requests and answers one by one: their layout, what a host refuses, and what is never sent. */
#include "support/test.h"

#include "wire/wire_private.h"

struct trip {
	struct vmm_wire_call client, host;
	struct vmm_wire_bytes answer;
};

static void ask(struct trip *t, const char *name, const void *argument)
{
	*t = (struct trip){0};
	assert_int_equal(
		vmm_wire_make_request(&t->client, vmm_wire_operation_named(name), argument),
		VMM_OK);
}

/* The host gets a copy of exactly the bytes that were sent. */
static vmm_status receive(struct trip *t)
{
	struct vmm_wire_bytes bytes = {0};

	assert_non_null(vmm_wire_append(&bytes, t->client.request.data, t->client.request.length));
	bytes.length = t->client.request.length;
	memcpy(t->host.descriptors, t->client.descriptors, sizeof(t->host.descriptors));
	t->host.descriptor_count = t->client.descriptor_count;
	return vmm_wire_read_request(&t->host, t->client.operation, &bytes);
}

static vmm_status answer(struct trip *t, void *argument)
{
	assert_int_equal(vmm_wire_make_answer(&t->host, &t->answer), VMM_OK);
	memcpy(t->client.descriptors, t->host.descriptors, sizeof(t->client.descriptors));
	t->client.descriptor_count = t->host.descriptor_count;
	return vmm_wire_read_answer(&t->client, t->answer.data, t->answer.length, argument);
}

static void finish(struct trip *t)
{
	vmm_wire_finish(&t->client);
	vmm_wire_finish(&t->host);
	vmm_free(t->answer.data);
}

static void operation_numbers_are_stable(void **state)
{
	(void)state;
	uint32_t known = 0;

	assert_null(vmm_wire_operation(0));
	assert_null(vmm_wire_operation(UINT32_MAX));
	assert_null(vmm_wire_operation_named("D3DKMTNothing"));
	for (uint32_t i = 1; i < 4000; i++) {
		const struct vmm_wire_operation *operation = vmm_wire_operation(i);

		if (!operation)
			continue;
		known++;
		assert_int_equal(operation->number, i);
		assert_ptr_equal(vmm_wire_operation_named(operation->name), operation);
	}
	assert_int_equal(known, vmm_wire_operation_count);
	assert_string_equal(vmm_wire_operation(1)->name, "D3DKMTOpenAdapterFromLuid");
	assert_string_equal(vmm_wire_operation(24)->name, "D3DKMTLock");
	assert_null(vmm_wire_operation(1000));
	assert_string_equal(vmm_wire_operation(1001)->name, "pfnAllocateCb");
	assert_string_equal(vmm_wire_operation(1007)->name, "pfnLockCb");
	assert_string_equal(vmm_wire_operation(1501)->name, "pfnSetDisplayModeCb");
	assert_null(vmm_wire_operation(2000));
	assert_string_equal(vmm_wire_operation(2001)->name, "device_create");
}

static void nested_arrays_are_transferred(void **state)
{
	uint8_t first[3] = {1, 2, 3}, second[9] = {4, 5, 6, 7, 8, 9, 10, 11, 12};
	D3DDDI_ALLOCATIONINFO info[2] = {
		{.pPrivateDriverData = first, .PrivateDriverDataSize = 3},
		{.pPrivateDriverData = second, .PrivateDriverDataSize = 9}};
	D3DKMT_CREATEALLOCATION args = {.hDevice = 7, .NumAllocations = 2};
	struct trip t;

	(void)state;
	args.pAllocationInfo = info;
	ask(&t, "D3DKMTCreateAllocation", &args);
	assert_int_equal(receive(&t), VMM_OK);
	assert_false(t.host.foreign);
	D3DKMT_CREATEALLOCATION *there = vmm_wire_argument(&t.host);
	assert_ptr_not_equal(there->pAllocationInfo, info);
	assert_memory_equal(there->pAllocationInfo[1].pPrivateDriverData, second, 9);
	there->pAllocationInfo[0].hAllocation = 0x40000040;
	there->pAllocationInfo[1].hAllocation = 0x40000080;
	((uint8_t *)there->pAllocationInfo[1].pPrivateDriverData)[8] = 99;
	there->hResource = 0xC0;
	assert_int_equal(answer(&t, &args), VMM_OK);
	assert_int_equal(args.hResource, 0xC0);
	assert_ptr_equal(args.pAllocationInfo, info);
	assert_int_equal(info[0].hAllocation, 0x40000040);
	assert_int_equal(info[1].hAllocation, 0x40000080);
	assert_ptr_equal(info[0].pPrivateDriverData, first);
	assert_int_equal(second[8], 99);
	finish(&t);
}

static void a_request_with_client_memory_is_marked_foreign(void **state)
{
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = &info};
	D3DKMT_CREATEALLOCATION args = {.NumAllocations = 1};
	struct trip t;

	(void)state;
	args.pAllocationInfo = &info;
	ask(&t, "D3DKMTCreateAllocation", &args);
	assert_int_equal(receive(&t), VMM_OK);
	assert_true(t.host.foreign);
	finish(&t);
}

/* ALF-38: hSection uses the field of pSystemMem. */
static void a_section_is_sent_as_a_descriptor(void **state)
{
	D3DDDI_ALLOCATIONINFO2 info = {.hSection = (HANDLE)(uintptr_t)33};
	D3DKMT_CREATEALLOCATION args = {.NumAllocations = 1};
	struct trip t;

	(void)state;
	args.pAllocationInfo2 = &info;
	args.Flags.ExistingSection = 1;
	ask(&t, "D3DKMTCreateAllocation2", &args);
	assert_int_equal(t.client.descriptors[0], 33);
	t.client.descriptors[0] = 77;
	assert_int_equal(receive(&t), VMM_OK);
	assert_false(t.host.foreign);
	D3DKMT_CREATEALLOCATION *there = vmm_wire_argument(&t.host);
	assert_ptr_equal(there->pAllocationInfo2[0].hSection, (HANDLE)(uintptr_t)77);
	assert_int_equal(answer(&t, &args), VMM_OK);
	assert_ptr_equal(info.hSection, (HANDLE)(uintptr_t)33);
	for (uint32_t i = 0; i + 8 <= t.answer.length; i += 8)
		assert_int_not_equal(t.answer.data[i], 77);
	finish(&t);
}

static void descriptors_are_sent_by_index(void **state)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE args = {.hSyncObject = 5};
	struct trip t;

	(void)state;
	args.hNtHandle = (HANDLE)(uintptr_t)33;
	ask(&t, "D3DKMTOpenSyncObjectFromNtHandle", &args);
	assert_int_equal(t.client.descriptor_count, 1);
	assert_int_equal(t.client.descriptors[0], 33);
	t.client.descriptors[0] = 77; /* its number in the host */
	assert_int_equal(receive(&t), VMM_OK);
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE *there = vmm_wire_argument(&t.host);
	assert_ptr_equal(there->hNtHandle, (HANDLE)(uintptr_t)77);
	there->hSyncObject = 6;
	assert_int_equal(answer(&t, &args), VMM_OK);
	assert_ptr_equal(args.hNtHandle, (HANDLE)(uintptr_t)33);
	assert_int_equal(args.hSyncObject, 6);
	/* The host's descriptor number is not sent. */
	for (uint32_t i = 0; i + 8 <= t.answer.length; i += 8)
		assert_int_not_equal(t.answer.data[i], 77);
	finish(&t);
}

static void a_missing_descriptor_makes_a_request_malformed(void **state)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE args = {.hSyncObject = 0};
	struct trip t;

	(void)state;
	args.hNtHandle = (HANDLE)(uintptr_t)33;
	ask(&t, "D3DKMTOpenSyncObjectFromNtHandle", &args);
	t.client.descriptor_count = 0;
	assert_int_equal(receive(&t), VMM_INVALID_PARAMETER);
	finish(&t);
}

static void an_invalid_descriptor_number_arrives_as_none(void **state)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE args = {.hSyncObject = 0};
	struct trip t;

	(void)state;
	args.hNtHandle = (HANDLE)(uintptr_t)0x123456789Au;
	ask(&t, "D3DKMTOpenSyncObjectFromNtHandle", &args);
	assert_int_equal(t.client.descriptor_count, 0);
	assert_int_equal(receive(&t), VMM_OK);
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE *there = vmm_wire_argument(&t.host);
	assert_ptr_equal(there->hNtHandle, (HANDLE)(intptr_t)-1);
	assert_int_equal(answer(&t, &args), VMM_OK);
	assert_ptr_equal(args.hNtHandle, (HANDLE)(uintptr_t)0x123456789Au);
	finish(&t);
	/* Nor does a number that is not an open descriptor; the sender finds that out. */
	args.hNtHandle = (HANDLE)(uintptr_t)33;
	ask(&t, "D3DKMTOpenSyncObjectFromNtHandle", &args);
	vmm_wire_mark_closed(&t.client, 0);
	assert_int_equal(receive(&t), VMM_OK);
	there = vmm_wire_argument(&t.host);
	assert_ptr_equal(there->hNtHandle, (HANDLE)(intptr_t)-1);
	finish(&t);
}

/*
 * Where no list means all, an overlong list must not become none. Only its count is sent, and no
 * address.
 */
static void an_overlong_list_is_not_sent_as_no_list(void **state)
{
	D3DDDICB_LOCK args = {.NumPages = UINT32_MAX};
	const UINT page = 0;
	struct trip t;

	(void)state;
	args.pPages = &page;
	ask(&t, "pfnLockCb", &args);
	assert_int_equal(receive(&t), VMM_OK);
	D3DDDICB_LOCK *there = vmm_wire_argument(&t.host);
	assert_non_null(there->pPages);
	assert_int_equal(answer(&t, &args), VMM_OK);
	uint64_t slot;
	memcpy(&slot, t.answer.data + offsetof(D3DDDICB_LOCK, pPages), sizeof(slot));
	assert_true(slot == 0);
	assert_ptr_equal(args.pPages, &page);
	finish(&t);
}

static void an_answer_returns_a_new_descriptor(void **state)
{
	D3DKMT_HANDLE object = 0x40;
	HANDLE handle = (HANDLE)(uintptr_t)5;
	D3DKMT_SHAREOBJECTS args = {.ObjectCount = 1};
	struct trip t;

	(void)state;
	args.ObjectHandleArray = &object;
	args.pSharedNtHandle = &handle;
	for (int given = 0; given < 2; given++) {
		ask(&t, "D3DKMTShareObjects", &args);
		assert_int_equal(receive(&t), VMM_OK);
		D3DKMT_SHAREOBJECTS *there = vmm_wire_argument(&t.host);
		assert_int_equal(*there->ObjectHandleArray, 0x40);
		if (given)
			*there->pSharedNtHandle = (HANDLE)(uintptr_t)88;
		assert_int_equal(vmm_wire_make_answer(&t.host, &t.answer), VMM_OK);
		assert_int_equal(t.host.descriptor_count, given);
		t.client.descriptor_count = t.host.descriptor_count;
		t.client.descriptors[0] = 9; /* its number in the client */
		assert_int_equal(
			vmm_wire_read_answer(&t.client, t.answer.data, t.answer.length, &args),
			VMM_OK);
		assert_ptr_equal(handle, (HANDLE)(uintptr_t)(given ? 9 : 5));
		finish(&t);
	}
}

static void an_answers_pointer_into_another_array_is_translated(void **state)
{
	uint8_t data[64];
	D3DDDI_OPENALLOCATIONINFO info[2] = {{.hAllocation = 0}};
	D3DKMT_OPENRESOURCE args = {.NumAllocations = 2, .TotalPrivateDriverDataBufferSize = 64};
	struct trip t;

	(void)state;
	args.pOpenAllocationInfo = info;
	args.pTotalPrivateDriverDataBuffer = data;
	ask(&t, "D3DKMTOpenResource", &args);
	assert_int_equal(receive(&t), VMM_OK);
	D3DKMT_OPENRESOURCE *there = vmm_wire_argument(&t.host);
	there->pOpenAllocationInfo[0].pPrivateDriverData = there->pTotalPrivateDriverDataBuffer;
	there->pOpenAllocationInfo[1].pPrivateDriverData =
		(uint8_t *)there->pTotalPrivateDriverDataBuffer + 40;
	assert_int_equal(answer(&t, &args), VMM_OK);
	assert_ptr_equal(info[0].pPrivateDriverData, data);
	assert_ptr_equal(info[1].pPrivateDriverData, data + 40);
	finish(&t);
}

static void an_answer_that_points_outside_is_refused(void **state)
{
	uint8_t data[8] = {0};
	D3DDDI_OPENALLOCATIONINFO info = {.hAllocation = 1};
	D3DKMT_OPENRESOURCE args = {.NumAllocations = 1, .TotalPrivateDriverDataBufferSize = 8};
	struct trip t;

	(void)state;
	args.pOpenAllocationInfo = &info;
	args.pTotalPrivateDriverDataBuffer = data;
	ask(&t, "D3DKMTOpenResource", &args);
	assert_int_equal(receive(&t), VMM_OK);
	assert_int_equal(vmm_wire_make_answer(&t.host, &t.answer), VMM_OK);
	uint32_t slot =
		t.host.spans[0].at + offsetof(D3DDDI_OPENALLOCATIONINFO, pPrivateDriverData);
	t.answer.data[slot] = 9;
	assert_int_equal(vmm_wire_read_answer(&t.client, t.answer.data, t.answer.length, &args),
			 VMM_INVALID_PARAMETER);
	assert_null(info.pPrivateDriverData);
	assert_int_equal(vmm_wire_read_answer(&t.client, t.answer.data, t.answer.length - 8, &args),
			 VMM_INVALID_PARAMETER);
	finish(&t);
}

static void an_overlong_array_is_sent_as_its_count_only(void **state)
{
	D3DKMT_HANDLE handle = 1;
	D3DKMT_UNLOCK args = {.NumAllocations = UINT32_MAX};
	struct trip t;

	(void)state;
	args.phAllocations = &handle;
	ask(&t, "D3DKMTUnlock", &args);
	assert_int_equal(receive(&t), VMM_OK);
	D3DKMT_UNLOCK *there = vmm_wire_argument(&t.host);
	assert_null(there->phAllocations);
	assert_int_equal(there->NumAllocations, UINT32_MAX);
	finish(&t);
}

/* One wrong field of each kind. */
static void malformed_requests_are_refused(void **state)
{
	D3DKMT_HANDLE handles[3] = {1, 2, 3};
	D3DKMT_UNLOCK args = {.NumAllocations = 3};
	enum { LIES = 6 };

	(void)state;
	args.phAllocations = handles;
	for (int lie = 0; lie <= LIES; lie++) {
		struct trip t;

		ask(&t, "D3DKMTUnlock", &args);
		uint8_t *bytes = t.client.request.data;
		switch (lie) {
		case 1: /* more elements than bytes */
			bytes[offsetof(D3DKMT_UNLOCK, NumAllocations)] = 5;
			break;
		case 2: /* bytes that belong to no array */
			bytes[offsetof(D3DKMT_UNLOCK, NumAllocations)] = 1;
			break;
		case 3: /* an address */
			bytes[offsetof(D3DKMT_UNLOCK, phAllocations) + 3] = 1;
			break;
		case 4: /* marked as too long, although the count is not */
			bytes[offsetof(D3DKMT_UNLOCK, phAllocations)] = VMM_WIRE_TOO_LONG;
			break;
		case 5:
			t.client.request.length -= 8;
			break;
		case LIES: /* shorter than the argument */
			t.client.request.length = 8;
			break;
		default:
			break;
		}
		assert_int_equal(receive(&t), lie ? VMM_INVALID_PARAMETER : VMM_OK);
		finish(&t);
	}
}

static void a_const_argument_is_not_returned(void **state)
{
	uint8_t data[16] = {0};
	D3DKMT_QUERYADAPTERINFO args = {.hAdapter = 3, .PrivateDriverDataSize = 16};
	struct trip t;

	(void)state;
	args.pPrivateDriverData = data;
	ask(&t, "D3DKMTQueryAdapterInfo", &args);
	assert_int_equal(receive(&t), VMM_OK);
	D3DKMT_QUERYADAPTERINFO *there = vmm_wire_argument(&t.host);
	there->hAdapter = 99;
	memset(there->pPrivateDriverData, 0x77, 16);
	assert_int_equal(answer(&t, &args), VMM_OK);
	assert_int_equal(t.answer.length, 16);
	assert_int_equal(args.hAdapter, 3);
	assert_int_equal(data[15], 0x77);
	finish(&t);
}

static void a_null_argument_is_a_request_of_zero_bytes(void **state)
{
	struct trip t;

	(void)state;
	ask(&t, "pfnLockCb", NULL);
	assert_int_equal(t.client.request.length, 0);
	assert_int_equal(receive(&t), VMM_OK);
	assert_null(vmm_wire_argument(&t.host));
	assert_int_equal(answer(&t, NULL), VMM_OK);
	assert_int_equal(t.answer.length, 0);
	assert_int_equal(vmm_wire_read_answer(&t.client, (const uint8_t *)"12345678", 8, NULL),
			 VMM_INVALID_PARAMETER);
	finish(&t);
}

/* ALF-36: with a resource the list is not read, so the pointer need not be valid. */
static void arrays_that_the_call_does_not_read_are_not_sent(void **state)
{
	D3DKMT_HANDLE handle = 7;
	D3DDDICB_DEALLOCATE args = {.NumAllocations = 1};

	(void)state;
	for (int resource = 0; resource < 2; resource++) {
		struct trip t;

		args.hResource = resource ? &args : NULL;
		args.HandleList = resource ? (D3DKMT_HANDLE *)(uintptr_t)0x10 : &handle;
		ask(&t, "pfnDeallocateCb", &args);
		assert_int_equal(receive(&t), VMM_OK);
		D3DDDICB_DEALLOCATE *there = vmm_wire_argument(&t.host);
		assert_ptr_equal(there->hResource, args.hResource);
		if (resource)
			assert_null(there->HandleList);
		else
			assert_int_equal(*there->HandleList, 7);
		finish(&t);
	}
	/* A request that contains it nevertheless is malformed. */
	struct trip t;
	ask(&t, "pfnDeallocateCb", &args);
	t.client.request.data[offsetof(D3DDDICB_DEALLOCATE, HandleList)] = VMM_WIRE_SENT;
	assert_int_equal(receive(&t), VMM_INVALID_PARAMETER);
	finish(&t);
}

/*
 * PRI-03: one priority for a resource, else one for each handle. A list beside a resource is sent
 * too, so that the host refuses it.
 */
static void an_array_count_may_depend_on_another_pointer(void **state)
{
	D3DKMT_HANDLE handles[3] = {7, 8, 9};
	UINT priorities[3] = {1, 2, 3};
	D3DDDICB_SETPRIORITY args = {.HandleList = handles, .NumAllocations = 3};

	(void)state;
	for (uint32_t resource = 0; resource < 2; resource++) {
		struct trip t;

		args.hResource = resource ? &args : NULL;
		args.pPriorities = resource ? priorities + 2 : priorities;
		ask(&t, "pfnSetPriorityCb", &args);
		assert_int_equal(receive(&t), VMM_OK);
		assert_int_equal(t.host.spans[1].bytes, resource ? 4 : 12);
		D3DDDICB_SETPRIORITY *there = vmm_wire_argument(&t.host);
		assert_int_equal(there->pPriorities[0], resource ? 3 : 1);
		assert_int_equal(there->HandleList[2], 9);
		finish(&t);
	}
}

static void a_call_without_memory_for_its_request_fails(void **state)
{
	uint8_t data[16] = {0};
	D3DKMT_QUERYADAPTERINFO args = {.PrivateDriverDataSize = 16};
	vmm_status status = VMM_NO_MEMORY;

	(void)state;
	args.pPrivateDriverData = data;
	for (uint32_t n = 1; status == VMM_NO_MEMORY; n++) {
		struct vmm_wire_call call = {0};

		assert_in_range(n, 1, 8);
		vmm_calloc_fail_after(n);
		status = vmm_wire_make_request(
			&call, vmm_wire_operation_named("D3DKMTQueryAdapterInfo"), &args);
		vmm_calloc_fail_after(0);
		vmm_wire_finish(&call);
	}
	assert_int_equal(status, VMM_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operation_numbers_are_stable),
		cmocka_unit_test(nested_arrays_are_transferred),
		cmocka_unit_test(a_request_with_client_memory_is_marked_foreign),
		cmocka_unit_test(a_section_is_sent_as_a_descriptor),
		cmocka_unit_test(descriptors_are_sent_by_index),
		cmocka_unit_test(a_missing_descriptor_makes_a_request_malformed),
		cmocka_unit_test(an_invalid_descriptor_number_arrives_as_none),
		cmocka_unit_test(an_overlong_list_is_not_sent_as_no_list),
		cmocka_unit_test(an_answer_returns_a_new_descriptor),
		cmocka_unit_test(an_answers_pointer_into_another_array_is_translated),
		cmocka_unit_test(an_answer_that_points_outside_is_refused),
		cmocka_unit_test(an_overlong_array_is_sent_as_its_count_only),
		cmocka_unit_test(malformed_requests_are_refused),
		cmocka_unit_test(a_const_argument_is_not_returned),
		cmocka_unit_test(a_null_argument_is_a_request_of_zero_bytes),
		cmocka_unit_test(arrays_that_the_call_does_not_read_are_not_sent),
		cmocka_unit_test(an_array_count_may_depend_on_another_pointer),
		cmocka_unit_test(a_call_without_memory_for_its_request_fails),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
