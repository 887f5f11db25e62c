/* SPDX-License-Identifier: MIT */
/*
 * Clients that end during calls that wait, and a host that ends while clients wait. No other client
 * is affected, and no thread waits forever.
 */
#include "raw_client.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

/* The waiting call uses the first channel, from which the host does not read meanwhile. */
static void a_client_dies_inside_a_wait(void **state)
{
	struct served served;
	struct raw raw, other;

	(void)state;
	served_meet(&served, &other, "other", &raw, "dying");
	raw_ask_acquire(&raw, raw.channel, raw_mutex(&raw, NULL), 1);
	served_await_inside(&served, 1);
	raw_close(&raw);
	served_await_clients(&served, 1);
	(void)raw_device(&other);
	served_part(&served, &other, NULL);
}

/* The waiting call uses a further channel. The client disconnects cleanly (polite) or dies. */
static void a_client_ends_while_its_other_threads_wait(void **state)
{
	(void)state;
	for (uint32_t polite = 0; polite < 2; polite++) {
		struct served served;
		struct raw raw;
		int32_t status;

		served_meet(&served, &raw, "dying", NULL, NULL);
		D3DKMT_HANDLE mutex = raw_mutex(&raw, NULL);
		int channel = raw_join(&raw, &status);
		assert_true(channel >= 0);
		raw_ask_acquire(&raw, channel, mutex, 1);
		served_await_inside(&served, 1);
		if (polite)
			raw_disconnect(&raw);
		else
			raw_close(&raw);
		raw_expect_end(channel);
		close(channel);
		served_await_clients(&served, 0);
		served_stop(&served);
	}
}

/*
 * Objects that the dead client held are free for others: the mutex is abandoned, and the memory is
 * freed.
 */
static void other_clients_continue_after_a_death(void **state)
{
	struct served served;
	struct raw raw, other;
	D3DKMT_HANDLE global;

	(void)state;
	served_meet(&served, &raw, "dying", &other, "other");
	D3DKMT_HANDLE mutex = raw_mutex(&raw, &global);
	D3DKMT_ACQUIREKEYEDMUTEX take = {.hKeyedMutex = mutex};
	assert_int_equal(raw_call(&raw, "D3DKMTAcquireKeyedMutex", &take), STATUS_SUCCESS);
	D3DKMT_OPENKEYEDMUTEX open = {.hSharedHandle = global};
	assert_int_equal(raw_call(&other, "D3DKMTOpenKeyedMutex", &open), STATUS_SUCCESS);
	raw_ask_acquire(&other, other.channel, open.hKeyedMutex, 0);
	served_await_inside(&served, 1);
	raw_close(&raw);
	assert_int_equal(raw_await(other.channel), 0x80); /* STATUS_ABANDONED */
	served_part(&served, &other, NULL);
}

/* Two clients have as many waiting calls as each may have. A third client is served as usual. */
static void blocked_channels_do_not_delay_other_clients(void **state)
{
	enum { CHANNELS = 63 };
	struct served served;
	struct raw one, two, other;
	int channel[CHANNELS];
	int32_t status;

	(void)state;
	served_meet(&served, &one, "one", &two, "two");
	raw_open(&other, &served, "other");
	D3DKMT_HANDLE mutex = raw_mutex(&one, NULL), first = raw_mutex(&two, NULL);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		channel[i] = raw_join(&one, &status);
		assert_true(channel[i] >= 0);
		raw_ask_acquire(&one, channel[i], mutex, i + 1);
	}
	raw_ask_acquire(&two, two.channel, first, 1);
	served_await_inside(&served, CHANNELS + 1);
	D3DKMT_HANDLE device = raw_device(&other);
	for (uint32_t i = 0; i < 100; i++)
		(void)raw_allocate(&other, device, 4 * KIB);
	/* Each call continues when its turn comes, in any order. */
	D3DKMT_ACQUIREKEYEDMUTEX take = {.hKeyedMutex = mutex};
	assert_int_equal(raw_call(&one, "D3DKMTAcquireKeyedMutex", &take), STATUS_SUCCESS);
	for (uint32_t i = CHANNELS; i-- > 0;) {
		assert_int_equal(raw_release(&one, mutex, i + 1), STATUS_SUCCESS);
		assert_int_equal(raw_await(channel[i]), STATUS_SUCCESS);
		close(channel[i]);
	}
	raw_disconnect(&one);
	raw_close(&two);
	served_part(&served, &other, NULL);
}

/*
 * The lock waits for a packet that runs for half a second; the core holds no lock meanwhile. The
 * client dies before the packet ends.
 */
static void a_client_dies_in_a_lock_that_waits_for_the_gpu(void **state)
{
	struct served served;
	struct raw raw, other;
	struct client_context c;
	void *data;

	(void)state;
	served_meet(&served, &raw, "dying", &other, "other");
	D3DKMT_HANDLE device = raw_device(&raw);
	D3DKMT_HANDLE allocation = raw_allocate(&raw, device, 64 * KIB);
	raw_context(&raw, device, &c);
	client_fill(&c, allocation, 64 * KIB, 7);
	client_stall(&c, 500000000);
	raw_render(&raw, &c);
	const D3DKMT_LOCK lock = {.hDevice = device, .hAllocation = allocation};
	raw_ask(&raw, raw.channel, "D3DKMTLock", &lock);
	served_await_inside(&served, 1);
	raw_close(&raw);
	D3DKMT_HANDLE alive = raw_device(&other);
	assert_int_equal(raw_lock(&other, alive, raw_allocate(&other, alive, 4 * KIB), &data), 0);
	served_await_clients(&served, 1);
	served_part(&served, &other, NULL);
}

static void the_host_ends_with_clients_inside_calls(void **state)
{
	enum { CLIENTS = 8 };
	struct served served;
	struct raw raw[CLIENTS];

	(void)state;
	served_start(&served, NULL, 0);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		raw_open(&raw[i], &served, "waiting");
		D3DKMT_HANDLE mutex = raw_mutex(&raw[i], NULL);
		if (i % 2)
			raw_ask_acquire(&raw[i], raw[i].channel, mutex, 1);
		else
			(void)raw_device(&raw[i]);
	}
	served_await_inside(&served, CLIENTS / 2);
	served_stop(&served);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		raw_expect_end(raw[i].channel);
		raw_expect_end(raw[i].view);
		raw_close(&raw[i]);
	}
}

/* The client dies before it gets the answer. Its request is executed and its effects are undone. */
static void a_client_dies_before_its_answer(void **state)
{
	struct served served;

	(void)state;
	served_start(&served, NULL, 0);
	for (uint32_t i = 0; i < 50; i++) {
		struct raw raw;

		raw_open(&raw, &served, "brief");
		const D3DKMT_CREATEDEVICE args = {.hAdapter = raw_adapter(&raw)};
		raw_ask(&raw, raw.channel, "D3DKMTCreateDevice", &args);
		raw_close(&raw);
	}
	served_await_clients(&served, 0);
	served_await_lines(&served, 100); /* two lines for each client: connected, disconnected */
	served_stop(&served);
}

/*
 * The client has closed its socket before the host reads its hello. The log reports it, as every
 * client that disconnects.
 */
static void a_client_disconnects_before_its_welcome(void **state)
{
	struct served served;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open_briefly(&served, "brief");
	served_await(&served, "connected: brief");
	served_await(&served, "disconnected");
	served_await_clients(&served, 0);
	served_stop(&served);
}

static void set_power(struct served *served, uint32_t state)
{
	assert_int_equal(
		vidmm_adapter_set_power(served->client.adapter, state, VIDMM_SLEEP_STANDBY), 0);
}

static uint64_t allocations(struct served *served)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	vidmm_adapter_statistics(served->client.adapter, &statistics);
	return statistics.allocations;
}

/*
 * The objects of a dead client are freed when the adapter has power again; no other client waits
 * for that. A call that needs the adapter meanwhile waits for power; one that does not is served.
 */
static void a_client_dies_while_the_adapter_sleeps(void **state)
{
	struct served served;
	struct raw raw, other, third;
	struct client_context c;

	(void)state;
	served_meet(&served, &other, "other", NULL, NULL);
	D3DKMT_HANDLE alive = raw_device(&other);
	D3DKMT_HANDLE kept = raw_allocate(&other, alive, 64 * KIB);
	void *data;
	assert_int_equal(raw_lock(&other, alive, kept, &data), 0);
	memset(data, 0x5A, 64 * KIB);
	uint64_t before = allocations(&served);
	raw_open(&raw, &served, "dying");
	D3DKMT_HANDLE device = raw_device(&raw);
	D3DKMT_HANDLE allocation = raw_allocate(&raw, device, 64 * KIB);
	raw_context(&raw, device, &c);
	client_fill(&c, allocation, 64 * KIB, 7);
	raw_render(&raw, &c);
	set_power(&served, VIDMM_POWER_D3);
	raw_close(&raw); /* it is inside no call */
	served_await(&served, "disconnected");
	/* A client that connects and disconnects without using the adapter is served. */
	raw_open(&third, &served, "third");
	(void)raw_mutex(&third, NULL);
	raw_disconnect(&third);
	const D3DKMT_LOCK lock = {.hDevice = alive, .hAllocation = kept};
	raw_ask(&other, other.channel, "D3DKMTLock", &lock);
	served_await_inside(&served, 1);
	set_power(&served, VIDMM_POWER_D0);
	assert_int_equal(raw_await(other.channel), STATUS_SUCCESS);
	while (allocations(&served) != before) /* it is freed once the GPU has finished with it */
		sched_yield();
	served_await_clients(&served, 1);
	for (uint32_t i = 0; i < 64 * KIB; i++)
		assert_int_equal(((uint8_t *)data)[i], 0x5A);
	served_part(&served, &other, NULL);
}

/*
 * The last message of a client is logged as the cause of its end, whichever of its sockets is seen
 * closed first.
 */
static void a_disconnect_message_is_the_only_cause_logged(void **state)
{
	const struct vmm_message_head disconnect = {.magic = VMM_PROTOCOL_MAGIC,
						    .kind = VMM_MESSAGE_DISCONNECT};
	struct served served;

	(void)state;
	served_start(&served, NULL, 0);
	for (uint32_t i = 0; i < 300; i++) {
		struct raw raw;

		raw_open(&raw, &served, "polite");
		assert_true(
			raw_send(raw.channel, &disconnect, sizeof(disconnect), NULL, 0, NULL, 0));
		close(raw.view);
		raw.view = -1;
		raw_close(&raw);
	}
	served_await_clients(&served, 0);
	served_await_lines(&served, 600);
	pthread_mutex_lock(&served.lock);
	for (uint32_t i = 0; i < SERVED_LINES; i++)
		assert_null(strstr(served.line[i], "gone:"));
	pthread_mutex_unlock(&served.lock);
	served_stop(&served);
}

/* A client that has said that it exits may still call, until its sockets are closed. */
static void a_client_that_exits_can_call_until_its_end(void **state)
{
	const struct vmm_message_head exits = {.magic = VMM_PROTOCOL_MAGIC,
					       .kind = VMM_MESSAGE_EXITS};
	struct served served;
	struct raw raw;

	(void)state;
	served_meet(&served, &raw, "leaving", NULL, NULL);
	assert_true(raw_send(raw.channel, &exits, sizeof(exits), NULL, 0, NULL, 0));
	assert_true(raw_send(raw.channel, &exits, sizeof(exits), NULL, 0, NULL, 0));
	D3DKMT_ENUMADAPTERS2 adapters = {0};
	assert_int_equal(raw_call(&raw, "D3DKMTEnumAdapters2", &adapters), 0);
	raw_close(&raw);
	served_await(&served, " exited");
	served_stop(&served);
}

/*
 * A client without a view socket gets no instructions, so its session ends, even if it sends
 * nothing.
 */
static void a_closed_view_socket_ends_the_session(void **state)
{
	struct served served;
	struct raw raw;

	(void)state;
	served_meet(&served, &raw, "half", NULL, NULL);
	close(raw.view);
	raw.view = -1;
	served_await(&served, "disconnected: its view socket is closed");
	raw_expect_end(raw.channel);
	served_await_clients(&served, 0);
	raw_close(&raw);
	served_stop(&served);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_dies_inside_a_wait),
		cmocka_unit_test(a_client_ends_while_its_other_threads_wait),
		cmocka_unit_test(other_clients_continue_after_a_death),
		cmocka_unit_test(blocked_channels_do_not_delay_other_clients),
		cmocka_unit_test(a_client_dies_in_a_lock_that_waits_for_the_gpu),
		cmocka_unit_test(the_host_ends_with_clients_inside_calls),
		cmocka_unit_test(a_client_dies_before_its_answer),
		cmocka_unit_test(a_client_disconnects_before_its_welcome),
		cmocka_unit_test(a_client_dies_while_the_adapter_sleeps),
		cmocka_unit_test(a_disconnect_message_is_the_only_cause_logged),
		cmocka_unit_test(a_client_that_exits_can_call_until_its_end),
		cmocka_unit_test(a_closed_view_socket_ends_the_session),
	};

	return cmocka_run_group_tests_name("serve: death", tests, NULL, NULL);
}
