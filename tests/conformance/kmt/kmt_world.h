/* SPDX-License-Identifier: MIT */
/*
 * softgpu as a D3DKMT client sees it: one process that is attached, another one to enter, an
 * adapter handle, a device.
 */
#ifndef VMM_TESTS_KMT_WORLD_H
#define VMM_TESTS_KMT_WORLD_H

#include <support/client.h>

#include <d3dkmthk.h>

#define KIB 1024ull
#define MIB (1024 * KIB)

struct kmt_world {
	struct client client;
	struct vidmm_process *process, *other;
	D3DKMT_HANDLE adapter, device;
	LUID luid;
};

extern uint32_t kmt_sim, kmt_linux;
#define ON_BOTH(test)                                         \
	{"sim: " #test, test, NULL, NULL, &kmt_sim},          \
	{                                                     \
		"linux: " #test, test, NULL, NULL, &kmt_linux \
	}

void kmt_start(struct kmt_world *w, void **state);
void kmt_start_with(struct kmt_world *w, const struct client_options *options);
/*
 * Closes both processes with all their objects. Asserts that there was no finding that the test
 * did not expect.
 */
void kmt_stop(struct kmt_world *w);
/* Asserts that the last call was refused with a finding of that rule, which counts as expected. */
void kmt_found(struct kmt_world *w, const char *rule);
/* Asserts that the last reason has that status and contains the text. */
void kmt_told(struct kmt_world *w, NTSTATUS status, const char *text);

D3DKMT_HANDLE kmt_open_adapter(struct kmt_world *w);
D3DKMT_HANDLE kmt_device(struct kmt_world *w);
/* Creates one allocation of that many bytes, with the flags of D3DKMT_CREATEALLOCATIONFLAGS. */
NTSTATUS kmt_try_allocate(struct kmt_world *w, uint64_t bytes, uint32_t flags,
			  D3DKMT_CREATEALLOCATION *args, D3DKMT_HANDLE *allocation);
D3DKMT_HANDLE kmt_allocate(struct kmt_world *w, uint64_t bytes);
NTSTATUS kmt_destroy(struct kmt_world *w, D3DKMT_HANDLE resource, const D3DKMT_HANDLE *list,
		     uint32_t count);
NTSTATUS kmt_lock(struct kmt_world *w, D3DKMT_HANDLE *allocation, uint32_t flags, void **data);
NTSTATUS kmt_unlock(struct kmt_world *w, D3DKMT_HANDLE allocation);

/*
 * Creates a context of the device. The client_... functions fill its command buffer, which
 * D3DKMTRender gets.
 */
void kmt_context(struct kmt_world *w, struct client_context *c);
NTSTATUS kmt_render(struct client_context *c, D3DKMT_RENDER *args);

#endif
