/* SPDX-License-Identifier: MIT */
/*
 * Resources that are shared by NT handles, alone or in a bundle with a keyed mutex and a
 * synchronization object; and NT handles by name.
 */
#ifndef VMM_TESTS_SYNC_BUNDLE_H
#define VMM_TESTS_SYNC_BUNDLE_H

#include "sync_world.h"

#define BUNDLE_RUNTIME "what the runtime wrote"

/* The objects of one NT handle, in the order in which they are shared. */
struct bundle {
	D3DKMT_HANDLE resource, keyed, sync;
	D3DKMT_HANDLE allocation;
};

/*
 * A resource of one allocation, with those flags of D3DKMT_CREATEALLOCATIONFLAGS: 0x43 allows
 * sharing by an NT handle.
 */
#define BUNDLE_NT_RESOURCE 0x43u
NTSTATUS bundle_try_resource(D3DKMT_HANDLE device, uint32_t flags, D3DKMT_CREATEALLOCATION *args,
			     D3DKMT_HANDLE *allocation);
D3DKMT_HANDLE bundle_keyed(uint64_t key); /* with NtSecuritySharing and six bytes of private data */
/* All three; the third is a monitored fence. */
void bundle_make(struct sync_world *s, struct bundle *b);
NTSTATUS bundle_destroy_resource(D3DKMT_HANDLE device, D3DKMT_HANDLE resource);
NTSTATUS bundle_destroy_keyed(D3DKMT_HANDLE keyed);

/* D3DKMTShareObjects of up to four objects; name NULL: none. *nt is -1 if it fails. */
NTSTATUS bundle_share_as(const D3DKMT_HANDLE *objects, uint32_t count, const char *name,
			 uint32_t access, int *nt);
int bundle_share(const struct bundle *b); /* all three */
int bundle_share_one(D3DKMT_HANDLE object);
/* D3DKMTOpenNtHandleFromName, or its counterpart for synchronization objects. */
NTSTATUS bundle_by_name(bool sync, const char *name, uint32_t access, int *nt);

/*
 * D3DKMTOpenResourceFromNtHandle with the right sizes; the outputs are filled with sentinels
 * before.
 */
struct bundle_opening {
	D3DDDI_OPENALLOCATIONINFO2 info;
	char runtime[sizeof(BUNDLE_RUNTIME)], total[256];
	D3DKMT_OPENRESOURCEFROMNTHANDLE args;
};
void bundle_prepare(struct bundle_opening *o, D3DKMT_HANDLE device, int nt);
struct bundle bundle_open(D3DKMT_HANDLE device, int nt);

NTSTATUS bundle_acquire(D3DKMT_HANDLE keyed, uint64_t key); /* at once or not at all */
NTSTATUS bundle_await(D3DKMT_HANDLE keyed, uint64_t key);   /* without a time limit */
NTSTATUS bundle_release(D3DKMT_HANDLE keyed, uint64_t key);

/* The first word of an allocation that the process has created (LOCK-24). */
void bundle_write(D3DKMT_HANDLE device, D3DKMT_HANDLE allocation, uint32_t word);
uint32_t bundle_read(D3DKMT_HANDLE device, D3DKMT_HANDLE allocation);

#endif
