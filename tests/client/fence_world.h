/* SPDX-License-Identifier: MIT */
/*
 * A host with an adapter that supports monitored fences, and its clients, all in this process; each
 * client has its own fence.
 */
#ifndef VMM_TESTS_CLIENT_FENCE_WORLD_H
#define VMM_TESTS_CLIENT_FENCE_WORLD_H

#include <support/test.h>

#include <d3dkmthk.h>
#include <support/scripted_miniport.h>
#include <vidmm/client.h>
#include <vidmm/serve.h>

enum {
	SHARED = 0x3,
	CROSS_ADAPTER = 0x4,
	NO_SIGNAL = 0x10,
	NO_MAX_ON_TDR = 0x40,
	UNWAIT_ON_LAST = 0x400,
	REWIND = 0x4
};
enum { ALL = 0x1F0003 };

struct world {
	struct scripted_miniport *miniport, *second;
	struct vidmm_host *host;
	struct vidmm_adapter *adapter,
		*other; /* other: with GPU virtual addresses; NULL for most */
	struct vidmm_server *server;
};

struct program {
	struct vidmm_connection *connection;
	D3DKMT_HANDLE device, fence;
	const volatile uint64_t *value;
	int nt; /* of the fence that it made */
};

struct vidmm_adapter *start_adapter(struct world *w, struct scripted_miniport *m);
struct scripted_miniport *make_miniport(void);
/* memory_limit: of each client; 0: none. */
void start_with(struct world *w, uint64_t memory_limit);
void start(struct world *w);
void stop(struct world *w);
/* A socket of the host that `context`, a struct world, is. */
int more(void *context);
/* A program, on the adapter of that number; what the thread calls from here on is its. */
void come_on(struct program *p, struct world *w, uint32_t adapter);
void come(struct program *p, struct world *w);
void go(struct program *p);
/* Its fence, and, shared, a descriptor of it. */
void make(struct program *p, uint32_t flags);
void open_of(struct program *p, const struct program *maker, uint32_t flags);
NTSTATUS signal_with(struct program *p, uint64_t value, uint32_t flags);
void raise_to(struct program *p, uint64_t value);
/* event 0: in the call. */
NTSTATUS await(struct program *p, uint64_t value, int event);

#endif
