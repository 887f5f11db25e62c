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
		*other; /* other: an adapter with GPU virtual addresses; NULL in most tests */
	struct vidmm_server *server;
};

struct program {
	struct vidmm_connection *connection;
	D3DKMT_HANDLE device, fence;
	const volatile uint64_t *value;
	int nt; /* NT handle of the fence that it created */
};

struct vidmm_adapter *start_adapter(struct world *w, struct scripted_miniport *m);
struct scripted_miniport *make_miniport(void);
/* memory_limit: bytes that each client may use; 0: no limit. */
void start_with(struct world *w, uint64_t memory_limit);
void start(struct world *w);
void stop(struct world *w);
/* Connects to the host of `context`, a struct world. */
int more(void *context);
/* Starts a client on the adapter with that number. From here on the thread calls as this client. */
void come_on(struct program *p, struct world *w, uint32_t adapter);
void come(struct program *p, struct world *w);
void go(struct program *p);
/* Creates the client's fence and, if it is shared, an NT handle of it. */
void make(struct program *p, uint32_t flags);
void open_of(struct program *p, const struct program *maker, uint32_t flags);
NTSTATUS signal_with(struct program *p, uint64_t value, uint32_t flags);
void raise_to(struct program *p, uint64_t value);
/* event 0: the call itself waits. */
NTSTATUS await(struct program *p, uint64_t value, int event);

#endif
