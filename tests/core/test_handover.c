/* SPDX-License-Identifier: MIT */
/*
 * Two clients with memory for one: each submission waits until the other's is complete. Then no
 * other packet is in flight that could wake a thread. The thread that prepares, worker or client,
 * must never leave a packet to a thread that has just stopped looking for work. Many interleavings;
 * a lost wake-up is a deadlock, which the simulator reports. Also contexts that are destroyed at
 * their last completion while others continue.
 */
#include <support/client.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB    (1024u * 1024u)
#define ROUNDS 12u

static uint32_t seeds = 200;

struct one_client {
	struct client_device device;
	struct client_context context;
	D3DKMT_HANDLE allocation;
	struct vidmm_thread *thread;
	uint32_t failures;
};

static void take_turns(void *argument)
{
	struct one_client *c = argument;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t *words;

		client_fill(&c->context, c->allocation, 64, i + 1);
		if (client_try_submit(&c->context) != S_OK ||
		    client_try_lock(&c->device, &c->allocation, 1, (void **)&words) != S_OK ||
		    words[0] != i + 1 || client_unlock(&c->device, c->allocation) != S_OK) {
			c->failures++;
			return;
		}
	}
}

/* A context is destroyed as soon as its packet is complete, perhaps while the DPC still runs. */
static void end_at_once(void *argument)
{
	struct one_client *c = argument;

	for (uint32_t i = 0; i < 20 * ROUNDS; i++) {
		struct client_context context = {.device = &c->device};
		D3DDDICB_DESTROYCONTEXT end;

		context.c.NodeOrdinal = i & 1;
		if (c->device.cb->pfnCreateContextCb(c->device.handle, &context.c) != S_OK)
			c->failures++;
		client_fill(&context, c->allocation, 64, i + 1);
		end.hContext = context.c.hContext;
		if (client_try_submit(&context) != S_OK ||
		    c->device.cb->pfnDestroyContextCb(c->device.handle, &end) != S_OK)
			c->failures++;
	}
}

static void open_client(struct client *client, struct one_client *c, uint32_t node)
{
	const struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						.size_bytes = 1 * MIB,
						.segment_set = 1};

	memset(c, 0, sizeof(*c));
	client_open(client, &c->device);
	client_context(&c->device, node, &c->context);
	assert_int_equal(client_try_allocate(&c->device, &spec, NULL, &c->allocation, NULL), S_OK);
}

static void one_world(uint32_t kind, uint64_t seed, uint64_t vram_bytes, void (*act)(void *))
{
	const struct client_options options = {.kind = kind,
					       .seed = seed,
					       .switch_per_1024 = 100 + seed % 900,
					       .vram_bytes = vram_bytes};
	struct one_client c[2];
	struct client client;

	client_start(&client, &options);
	for (uint32_t i = 0; i < 2; i++)
		open_client(&client, &c[i], seed >> i & 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(vidmm_thread_create(client.host, i ? "second" : "first", act,
						     &c[i], &c[i].thread),
				 0);
	for (uint32_t i = 0; i < 2; i++) {
		vidmm_thread_join(c[i].thread);
		assert_int_equal(c[i].failures, 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		client_close(&c[i].device);
	assert_int_equal(client.findings, 0);
	client_stop(&client);
}

static void two_clients_take_turns_in_the_same_memory(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= seeds; seed++)
		one_world(VIDMM_HOST_SIM, seed, 1 * MIB, take_turns);
}

static void two_clients_on_threads_take_turns_in_the_same_memory(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= seeds / 20; seed++)
		one_world(VIDMM_HOST_LINUX, seed, 1 * MIB, take_turns);
}

static void contexts_are_destroyed_at_their_last_completion(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= seeds / 20; seed++) {
		one_world(VIDMM_HOST_SIM, seed, 4 * MIB, end_at_once);
		one_world(VIDMM_HOST_LINUX, seed, 4 * MIB, end_at_once);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_clients_take_turns_in_the_same_memory),
		cmocka_unit_test(two_clients_on_threads_take_turns_in_the_same_memory),
		cmocka_unit_test(contexts_are_destroyed_at_their_last_completion),
	};

	if (argc > 1)
		seeds = (uint32_t)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
