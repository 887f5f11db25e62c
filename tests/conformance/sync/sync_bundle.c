/* SPDX-License-Identifier: MIT */
#include "sync_bundle.h"

#include <string.h>

#include <support/named.h>

NTSTATUS bundle_try_resource(D3DKMT_HANDLE device, uint32_t flags, D3DKMT_CREATEALLOCATION *args,
			     D3DKMT_HANDLE *allocation)
{
	struct scripted_allocation spec = {.size_bytes = 16 * KIB,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &spec,
				       .PrivateDriverDataSize = sizeof(spec)};

	*args = (D3DKMT_CREATEALLOCATION){.hDevice = device,
					  .pPrivateRuntimeData = BUNDLE_RUNTIME,
					  .PrivateRuntimeDataSize = sizeof(BUNDLE_RUNTIME),
					  .NumAllocations = 1,
					  .pAllocationInfo2 = &info};
	memcpy(&args->Flags, &flags, sizeof(flags));
	NTSTATUS status = D3DKMTCreateAllocation2(args);
	*allocation = info.hAllocation;
	return status;
}

D3DKMT_HANDLE bundle_keyed(uint64_t key)
{
	char data[] = "secret";
	D3DKMT_CREATEKEYEDMUTEX2 args = {.InitialValue = key,
					 .pPrivateRuntimeData = data,
					 .PrivateRuntimeDataSize = 6,
					 .Flags.NtSecuritySharing = 1};

	assert_int_equal(D3DKMTCreateKeyedMutex2(&args), STATUS_SUCCESS);
	return args.hKeyedMutex;
}

void bundle_make(struct sync_world *s, struct bundle *b)
{
	D3DKMT_CREATEALLOCATION args;

	assert_int_equal(bundle_try_resource(s->device, BUNDLE_NT_RESOURCE, &args, &b->allocation),
			 STATUS_SUCCESS);
	assert_int_equal(args.hGlobalShare, 0); /* ALC-04 */
	b->resource = args.hResource;
	b->keyed = bundle_keyed(1);
	b->sync = sync_fence(s, 3, 7).handle;
}

NTSTATUS bundle_destroy_resource(D3DKMT_HANDLE device, D3DKMT_HANDLE resource)
{
	const D3DKMT_DESTROYALLOCATION2 args = {.hDevice = device, .hResource = resource};

	return D3DKMTDestroyAllocation2(&args);
}

NTSTATUS bundle_destroy_keyed(D3DKMT_HANDLE keyed)
{
	const D3DKMT_DESTROYKEYEDMUTEX args = {.hKeyedMutex = keyed};

	return D3DKMTDestroyKeyedMutex(&args);
}

NTSTATUS bundle_share_as(const D3DKMT_HANDLE *objects, uint32_t count, const char *name,
			 uint32_t access, int *nt)
{
	HANDLE handle = (HANDLE)(uintptr_t)0xdead;
	struct named n;
	NTSTATUS status = D3DKMTShareObjects(count, objects, name ? name_it(&n, name) : NULL,
					     access, &handle);

	/* SHR-37 */
	if (status)
		assert_true(handle == (HANDLE)(uintptr_t)0xdead);
	*nt = status ? -1 : (int)(uintptr_t)handle;
	return status;
}

int bundle_share_one(D3DKMT_HANDLE object)
{
	int nt;

	assert_int_equal(bundle_share_as(&object, 1, NULL, 0x20000, &nt), STATUS_SUCCESS);
	return nt;
}

int bundle_share(const struct bundle *b)
{
	const D3DKMT_HANDLE all[3] = {b->resource, b->keyed, b->sync};
	int nt;

	assert_int_equal(bundle_share_as(all, 3, NULL, 0x20000, &nt), STATUS_SUCCESS);
	return nt;
}

NTSTATUS bundle_by_name(bool sync, const char *name, uint32_t access, int *nt)
{
	struct named n;
	D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME of_sync = {.dwDesiredAccess = access,
							 .pObjAttrib = name_it(&n, name)};
	D3DKMT_OPENNTHANDLEFROMNAME of_resource = {.dwDesiredAccess = access,
						   .pObjAttrib = &n.attributes};
	NTSTATUS status = sync ? D3DKMTOpenSyncObjectNtHandleFromName(&of_sync)
			       : D3DKMTOpenNtHandleFromName(&of_resource);

	*nt = status ? -1 : (int)(uintptr_t)(sync ? of_sync.hNtHandle : of_resource.hNtHandle);
	return status;
}

void bundle_prepare(struct bundle_opening *o, D3DKMT_HANDLE device, int nt)
{
	memset(o, 0, sizeof(*o));
	o->args = (D3DKMT_OPENRESOURCEFROMNTHANDLE){.hDevice = device,
						    .hNtHandle = (HANDLE)(intptr_t)nt,
						    .NumAllocations = 1,
						    .pOpenAllocationInfo2 = &o->info,
						    .PrivateRuntimeDataSize = sizeof(o->runtime),
						    .pPrivateRuntimeData = o->runtime,
						    .TotalPrivateDriverDataBufferSize =
							    sizeof(o->total),
						    .pTotalPrivateDriverDataBuffer = o->total,
						    .hResource = 0xdead,
						    .hKeyedMutex = 0xdead,
						    .hSyncObject = 0xdead};
}

struct bundle bundle_open(D3DKMT_HANDLE device, int nt)
{
	struct bundle_opening o;

	bundle_prepare(&o, device, nt);
	assert_int_equal(D3DKMTOpenResourceFromNtHandle(&o.args), STATUS_SUCCESS);
	assert_string_equal(o.runtime, BUNDLE_RUNTIME);
	return (struct bundle){.resource = o.args.hResource,
			       .keyed = o.args.hKeyedMutex,
			       .sync = o.args.hSyncObject,
			       .allocation = o.info.hAllocation};
}

static NTSTATUS acquire(D3DKMT_HANDLE keyed, uint64_t key, LARGE_INTEGER *limit)
{
	D3DKMT_ACQUIREKEYEDMUTEX args = {.hKeyedMutex = keyed, .Key = key, .pTimeout = limit};

	return D3DKMTAcquireKeyedMutex(&args);
}

NTSTATUS bundle_acquire(D3DKMT_HANDLE keyed, uint64_t key)
{
	LARGE_INTEGER none = {.QuadPart = 0};

	return acquire(keyed, key, &none);
}

NTSTATUS bundle_await(D3DKMT_HANDLE keyed, uint64_t key)
{
	return acquire(keyed, key, NULL);
}

NTSTATUS bundle_release(D3DKMT_HANDLE keyed, uint64_t key)
{
	D3DKMT_RELEASEKEYEDMUTEX args = {.hKeyedMutex = keyed, .Key = key};

	return D3DKMTReleaseKeyedMutex(&args);
}

static uint32_t *lock(D3DKMT_HANDLE device, D3DKMT_HANDLE allocation)
{
	D3DKMT_LOCK2 args = {.hDevice = device, .hAllocation = allocation};

	assert_int_equal(D3DKMTLock2(&args), STATUS_SUCCESS);
	return args.pData;
}

static void unlock(D3DKMT_HANDLE device, D3DKMT_HANDLE allocation)
{
	const D3DKMT_UNLOCK2 args = {.hDevice = device, .hAllocation = allocation};

	assert_int_equal(D3DKMTUnlock2(&args), STATUS_SUCCESS);
}

void bundle_write(D3DKMT_HANDLE device, D3DKMT_HANDLE allocation, uint32_t word)
{
	*lock(device, allocation) = word;
	unlock(device, allocation);
}

uint32_t bundle_read(D3DKMT_HANDLE device, D3DKMT_HANDLE allocation)
{
	uint32_t word = *lock(device, allocation);

	unlock(device, allocation);
	return word;
}
