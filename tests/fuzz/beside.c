/* SPDX-License-Identifier: MIT */
#include "beside.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vidmm/client.h>
#include "support/folder.h"

#define KIB          1024u
#define HONEST_BYTES (96u * KIB)

/* ---- contents of the honest processes ---- */

static uint64_t canary(uint32_t allocation, uint32_t generation)
{
	uint64_t word = 0;

	memcpy(&word, HOSTILE_CANARY, HOSTILE_CANARY_BYTES);
	return word | (uint64_t)(allocation << 8 | (generation & 0xFF)) << 48;
}

/* Checks what was written the last time, and writes new words. */
static bool rewrite(uint64_t *words, uint32_t allocation, uint32_t generation)
{
	bool right = true;

	for (uint32_t i = 0; i < HONEST_BYTES / 8; i++) {
		right = right && (!generation || words[i] == canary(allocation, generation));
		words[i] = canary(allocation, generation + 1);
	}
	return right;
}

static const char *keep(struct neighbour *n)
{
	const char *wrong = NULL;

	for (uint32_t i = 0; i < BESIDE_HONEST; i++) {
		uint64_t *words = client_lock(&n->device, n->allocations[i], 0);

		if (!rewrite(words, i, n->generation))
			wrong = "the honest process's bytes have changed";
		assert_int_equal(client_unlock(&n->device, n->allocations[i]), 0);
	}
	n->generation++;
	return wrong;
}

static void settle(struct neighbour *n)
{
	client_open(&n->client, &n->device);
	for (uint32_t i = 0; i < BESIDE_HONEST; i++)
		n->allocations[i] =
			client_allocate(&n->device, HONEST_BYTES, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	(void)keep(n);
}

/* A second adapter of the same host, of WDDM 2.x. */
static void start_wddm2(struct client *client, struct vidmm_host *host)
{
	static const struct vidmm_registry_value values[] = {{"ApertureSize", 4096 * KIB},
							     {"Model", SOFTGPU_MODEL_WDDM2},
							     {"VideoPresentSources", 1},
							     {"HardwareQueues", 1}};
	const uint64_t vram_bytes = 2048 * KIB;
	const struct vidmm_adapter_options options = {
		.struct_size = sizeof(options),
		.driver_entry = softgpu_driver_entry,
		.bar_sizes = &vram_bytes,
		.bar_count = 1,
		.registry = values,
		.registry_count = sizeof(values) / sizeof(values[0]),
		.features = VIDMM_FEATURE_HWSCH,
		.system_memory_bytes = 64u << 20,
		.tdr = &client_no_tdr,
	};

	*client = (struct client){.host = host, .kind = VIDMM_HOST_LINUX, .owner = pthread_self()};
	assert_int_equal(vidmm_adapter_start(host, &options, &client->adapter), 0);
}

void beside_begin(struct beside *b)
{
	struct vidmm_host *host;

	client_start(&b->honest[0].client,
		     &(struct client_options){.kind = VIDMM_HOST_LINUX,
					      .vram_bytes = 512 * KIB,
					      .aperture_bytes = 4096 * KIB,
					      .system_memory_bytes = 64u << 20});
	host = b->honest[0].client.host;
	start_wddm2(&b->honest[1].client, host);
	for (uint32_t i = 0; i < BESIDE_ADAPTERS; i++)
		settle(&b->honest[i]);
	/* Resources that a host keeps from its first server on until its end. */
	struct vidmm_server *server;
	assert_int_equal(
		vidmm_server_create(host,
				    &(struct vidmm_server_options){
					    .struct_size = sizeof(struct vidmm_server_options)},
				    &server),
		0);
	vidmm_server_destroy(server);
}

void beside_end(struct beside *b)
{
	for (uint32_t i = 0; i < BESIDE_ADAPTERS; i++)
		client_close(&b->honest[i].device);
	vidmm_adapter_stop(b->honest[1].client.adapter);
	client_stop(&b->honest[0].client);
}

/* ---- the honest program ---- */

/*
 * The honest client has an allocation that stays locked while the hostile client runs, and one that
 * is not locked.
 */
struct guest {
	struct client client;
	struct client_device device;
	struct vidmm_connection *connection;
	struct vidmm_remote_device *remote;
	D3DKMT_HANDLE allocations[2];
	uint64_t *locked;
};

static bool guest_lock(struct guest *g, uint32_t i, uint64_t **words)
{
	void *data = NULL;

	if (client_try_lock(&g->device, &g->allocations[i], 0, &data) || !data)
		return false;
	*words = data;
	return true;
}

/* The client's end of a connection; -1: the server refused it. */
static int more(void *server)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	if (vidmm_server_connect(server, pair[1]) >= 0)
		return pair[0];
	close(pair[0]);
	return -1;
}

static const char *guest_begin(struct guest *g, struct vidmm_server *server)
{
	const struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						.size_bytes = HONEST_BYTES};
	uint64_t *words;

	*g = (struct guest){.client = {.kind = VIDMM_HOST_LINUX, .racing = true}};
	if (vidmm_connect_fd(more(server), "honest", more, server, &g->connection) < 0 ||
	    vidmm_remote_device_create(g->connection, 0, &g->remote) < 0)
		return "an honest client cannot connect";
	g->device = (struct client_device){.client = &g->client,
					   .cb = vidmm_remote_device_callbacks(g->remote),
					   .handle = vidmm_remote_device_handle(g->remote)};
	for (uint32_t i = 0; i < 2; i++) {
		if (client_try_allocate(&g->device, &spec, NULL, &g->allocations[i], NULL) ||
		    !guest_lock(g, i, &words))
			return "an honest client cannot begin";
		(void)rewrite(words, 8 + i, 0);
		if (i == 0)
			g->locked = words;
		else if (client_unlock(&g->device, g->allocations[i]))
			return "an honest client cannot unlock";
	}
	return NULL;
}

/* It gets the answers of an undisturbed client. */
static const char *guest_look(struct guest *g)
{
	uint64_t *words;

	if (!rewrite(g->locked, 8, 1))
		return "an honest client's locked bytes have changed";
	if (client_unlock(&g->device, g->allocations[0]))
		return "an honest client cannot unlock any more";
	for (uint32_t i = 0; i < 2; i++) {
		if (!guest_lock(g, i, &words))
			return "an honest client cannot lock any more";
		if (!rewrite(words, 8 + i, 2 - i))
			return "an honest client's bytes have changed";
		if (client_unlock(&g->device, g->allocations[i]))
			return "an honest client cannot unlock any more";
	}
	return NULL;
}

static void guest_end(struct guest *g)
{
	vidmm_remote_device_destroy(g->remote);
	vidmm_disconnect(g->connection);
}

/* ---- one script ---- */

static uint64_t count_allocations(const struct beside *b)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < BESIDE_ADAPTERS; i++) {
		struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

		vidmm_adapter_statistics(b->honest[i].client.adapter, &statistics);
		count += statistics.allocations;
	}
	return count;
}

static void note(struct beside *b, const char *wrong)
{
	if (wrong && !b->wrong)
		b->wrong = wrong;
}

static void add_up(struct beside *b, const struct hostile *hostile)
{
	b->scripts++;
	b->welcomes += hostile->welcomes;
	b->requests += hostile->requests;
	b->answers += hostile->answers;
	b->done += hostile->done;
	b->refusals += hostile->refusals;
	b->mapped += hostile->mapped;
	b->scribbled += hostile->scribbled;
}

static void keep_all(struct beside *b)
{
	for (uint32_t i = 0; i < BESIDE_ADAPTERS; i++)
		note(b, keep(&b->honest[i]));
}

void beside_run(struct beside *b, const uint8_t *script, size_t bytes)
{
	static struct hostile hostile;
	static struct guest guest;
	const struct vidmm_server_options options = {
		.struct_size = sizeof(options),
		.limits = {.channels = 4, .handles = 200, .memory_bytes = 8u << 20},
		.clients_max = 5,
	};
	struct vidmm_server *server;

	uint32_t descriptors = folder_count("/proc/self/fd");
	uint64_t allocations = count_allocations(b);
	assert_int_equal(vidmm_server_create(b->honest[0].client.host, &options, &server), 0);
	const char *refused = guest_begin(&guest, server);
	note(b, refused);
	hostile_run(&hostile, server, script, bytes);
	note(b, hostile.wrong);
	keep_all(b);
	note(b, refused ? NULL : guest_look(&guest));
	guest_end(&guest);
	vidmm_server_destroy(server);
	keep_all(b);
	vidmm_settle(b->honest[0].client.host); /* shares end on a thread of the adapter */
	for (uint32_t i = 0; i < BESIDE_ADAPTERS; i++)
		vidmm_adapter_check(b->honest[i].client.adapter);
	if (folder_count("/proc/self/fd") != descriptors)
		note(b, "descriptors are left");
	if (count_allocations(b) != allocations)
		note(b, "allocations are left");
	add_up(b, &hostile);
}
