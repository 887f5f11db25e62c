/* SPDX-License-Identifier: MIT */
/*
 * Each call for memory, mappings, descriptors, threads and sockets that a host makes for a short
 * client fails once, one in each round. The host survives, the client's call fails with the
 * documented status and succeeds when it is made again, and another client is untouched. (Q-488,
 *
 */
#include "raw_client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/vidmm/fault.h"

#define WORDS (64 * KIB / sizeof(uint32_t))

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return fault_fails(FAULT_MEMORY) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fault_fails(FAULT_MEMORY) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return fault_fails(FAULT_MEMORY) ? NULL : __real_realloc(memory, bytes);
}

struct neighbors {
	struct served served;
	struct raw witness, raw;
	D3DKMT_HANDLE device, allocation;
	uint32_t *words;
};

/* Makes a call, and makes it again if the host lacked something for it. */
#define MAKE(call)                                                                         \
	do {                                                                               \
		NTSTATUS status = (call);                                                  \
		if (status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES) \
			status = (call);                                                   \
		assert_int_equal(status, STATUS_SUCCESS);                                  \
	} while (0)

static void connect_once_more(struct raw *raw, struct served *served)
{
	if (!raw_try_open(raw, served, "unlucky"))
		assert_true(raw_try_open(raw, served, "unlucky"));
}

static NTSTATUS join(struct raw *raw, int *channel)
{
	int32_t status;

	*channel = raw_join(raw, &status);
	return status;
}

static D3DKMT_HANDLE make_device(struct raw *raw)
{
	D3DKMT_ADAPTERINFO info = {0};
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE create;

	MAKE(raw_call(raw, "D3DKMTEnumAdapters2", &all));
	create = (D3DKMT_CREATEDEVICE){.hAdapter = info.hAdapter};
	MAKE(raw_call(raw, "D3DKMTCreateDevice", &create));
	return create.hDevice;
}

static void share_a_fence(struct raw *raw, D3DKMT_HANDLE device)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = device,
		.Info = {.Type = D3DDDI_FENCE, .Flags = {.Shared = 1, .NtSecuritySharing = 1}}};
	HANDLE handle = NULL;

	MAKE(raw_call(raw, "D3DKMTCreateSynchronizationObject2", &create));
	D3DKMT_SHAREOBJECTS share = {.ObjectCount = 1,
				     .DesiredAccess = 0x20000,
				     .ObjectHandleArray = &create.hSyncObject,
				     .pSharedNtHandle = &handle};
	MAKE(raw_call(raw, "D3DKMTShareObjects", &share));
	close((int)(intptr_t)handle);
}

static void live_shortly(struct neighbors *n)
{
	struct raw *raw = &n->raw;
	D3DKMT_HANDLE allocation;
	uint32_t *words;
	int channel;

	connect_once_more(raw, &n->served);
	D3DKMT_HANDLE device = make_device(raw);
	MAKE(raw_try_allocate(raw, device, 64 * KIB, &allocation));
	MAKE(raw_lock(raw, device, allocation, (void **)&words));
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = ~i;
	MAKE(raw_unlock(raw, device, allocation));
	share_a_fence(raw, device);
	MAKE(join(raw, &channel));
	MAKE(raw_call_on(raw, channel, "D3DKMTEnumAdapters2", &(D3DKMT_ENUMADAPTERS2){0}));
	close(channel);
	MAKE(raw_lock(raw, device, allocation, (void **)&words));
	for (uint32_t i = 0; i < WORDS; i++)
		assert_int_equal(words[i], ~i);
	raw_disconnect(raw);
}

static void check_witness(struct neighbors *n)
{
	for (uint32_t i = 0; i < WORDS; i++)
		assert_int_equal(n->words[i], i);
	assert_int_equal(raw_unlock(&n->witness, n->device, n->allocation), STATUS_SUCCESS);
	assert_int_equal(raw_lock(&n->witness, n->device, n->allocation, (void **)&n->words),
			 STATUS_SUCCESS);
}

static void walk(enum fault_kind kind)
{
	struct neighbors n;
	uint32_t failed = 1, points = 0;

	fault_spare_thread();
	served_start(&n.served, NULL, 0);
	raw_open(&n.witness, &n.served, "witness");
	n.device = raw_device(&n.witness);
	n.allocation = raw_allocate(&n.witness, n.device, 64 * KIB);
	assert_int_equal(raw_lock(&n.witness, n.device, n.allocation, (void **)&n.words),
			 STATUS_SUCCESS);
	for (uint32_t i = 0; i < WORDS; i++)
		n.words[i] = i;
	for (uint32_t at = 1; failed; at++) {
		fault_arm(kind, at);
		live_shortly(&n);
		served_await_clients(&n.served, 1);
		failed = fault_end();
		points += failed;
		check_witness(&n);
	}
	print_message("%u calls for %s failed\n", points, fault_kind_name[kind]);
	raw_disconnect(&n.witness);
	served_await_clients(&n.served, 0);
	served_stop(&n.served);
}

static void q_488_a_refused_allocation_costs_the_call(void **state)
{
	(void)state;
	walk(FAULT_MEMORY);
}

static void q_488_a_refused_mapping_costs_the_call(void **state)
{
	(void)state;
	walk(FAULT_MAPPING);
}

static void q_488_a_refused_descriptor_costs_the_call(void **state)
{
	(void)state;
	walk(FAULT_DESCRIPTOR);
}

static void q_488_a_refused_thread_costs_the_call(void **state)
{
	(void)state;
	walk(FAULT_THREAD);
}

static void q_489_a_refused_socket_call_costs_the_call_at_most(void **state)
{
	(void)state;
	walk(FAULT_SOCKET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_488_a_refused_allocation_costs_the_call),
		cmocka_unit_test(q_488_a_refused_mapping_costs_the_call),
		cmocka_unit_test(q_488_a_refused_descriptor_costs_the_call),
		cmocka_unit_test(q_488_a_refused_thread_costs_the_call),
		cmocka_unit_test(q_489_a_refused_socket_call_costs_the_call_at_most),
	};

	return cmocka_run_group_tests_name("serve: faults", tests, NULL, NULL);
}
