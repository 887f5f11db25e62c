/* SPDX-License-Identifier: MIT */
/* The short modes of out_of_process_client. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"

#define HELD       3u
#define HELD_BYTES (128u << 10)

/* ---- hold: locked memory is written to, and still has its content when the input ends ---- */

int remote_hold(const char *socket, const char *argument)
{
	struct remote_device d;
	D3DKMT_HANDLE handles[HELD];
	uint32_t *words[HELD];
	uint32_t base = (uint32_t)strtoul(argument, NULL, 0);

	remote_open(&d, socket, "hold", REMOTE_SOFTGPU);
	for (uint32_t i = 0; i < HELD; i++) {
		handles[i] = client_allocate(&d.device, HELD_BYTES, SOFTGPU_ALLOCATION_CPU_VISIBLE);
		words[i] = client_lock(&d.device, handles[i], 0);
		for (uint32_t k = 0; k < HELD_BYTES / 4; k++)
			words[i][k] = base + k;
	}
	remote_say();
	remote_wait_for_end();
	/* Locked memory stays mapped, with or without a host. */
	for (uint32_t i = 0; i < HELD; i++)
		for (uint32_t k = 0; k < HELD_BYTES / 4; k++)
			if (words[i][k] != base + k)
				return REMOTE_WRONG;
	for (uint32_t i = 0; i < HELD; i++) {
		HRESULT status = client_unlock(&d.device, handles[i]);

		if (FAILED(status))
			remote_failed("pfnUnlockCb", status);
	}
	remote_close(&d);
	return REMOTE_DONE;
}

/* ---- protected: what the CPU may not see is not mapped, whatever is asked ---- */

int remote_protected(const char *socket, const char *argument)
{
	struct remote_device d;
	void *data = NULL;

	(void)argument;
	remote_open(&d, socket, "protected", REMOTE_SOFTGPU);
	D3DKMT_HANDLE handle = client_allocate(&d.device, HELD_BYTES, SOFTGPU_ALLOCATION_PROTECTED);
	for (uint32_t flags = 0; flags < 0x400; flags++)
		if (SUCCEEDED(client_try_lock(&d.device, &handle, flags, &data)) || data)
			return REMOTE_WRONG;
	if (FAILED(client_deallocate(&d.device, handle)))
		return REMOTE_WRONG;
	remote_close(&d);
	return REMOTE_DONE;
}

/* ---- fences ---- */

D3DKMT_HANDLE remote_make_fence(struct remote_device *d, const volatile uint64_t **value)
{
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 create = {.Info = {.Type = D3DDDI_MONITORED_FENCE}};
	HRESULT status = d->device.cb->pfnCreateSynchronizationObject2Cb(d->device.handle, &create);

	if (FAILED(status))
		remote_failed("pfnCreateSynchronizationObject2Cb", status);
	*value = create.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	return create.hSyncObject;
}

static HRESULT wait_for(struct remote_device *d, D3DKMT_HANDLE fence, UINT64 value)
{
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {
		.ObjectCount = 1, .ObjectHandleArray = &fence, .FenceValueArray = &value};

	return d->device.cb->pfnWaitForSynchronizationObjectFromCpuCb(d->device.handle, &args);
}

HRESULT remote_signal(struct remote_device *d, D3DKMT_HANDLE fence, UINT64 value)
{
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {
		.ObjectCount = 1, .ObjectHandleArray = &fence, .FenceValueArray = &value};

	return d->device.cb->pfnSignalSynchronizationObjectFromCpuCb(d->device.handle, &args);
}

/* Waits inside a call that only the end of the host ends. */
int remote_wait_fence(const char *socket, const char *argument)
{
	struct remote_device d;
	const volatile uint64_t *value;

	(void)argument;
	remote_open(&d, socket, "wait", REMOTE_SCRIPTED);
	D3DKMT_HANDLE fence = remote_make_fence(&d, &value);
	remote_say();
	remote_failed("pfnWaitForSynchronizationObjectFromCpuCb", wait_for(&d, fence, 1000));
}

/*
 * The page of a fence: its value is seen there, and it cannot be written to by whatever way a
 * program has.
 */
int remote_fences(const char *socket, const char *argument)
{
	struct remote_device d;
	const volatile uint64_t *value;
	long page = sysconf(_SC_PAGESIZE);

	(void)argument;
	remote_open(&d, socket, "fences", REMOTE_SCRIPTED);
	D3DKMT_HANDLE fence = remote_make_fence(&d, &value);
	if (FAILED(remote_signal(&d, fence, 7)) || *value != 7)
		return REMOTE_WRONG;
	void *begin = (void *)((uintptr_t)value & ~((uintptr_t)page - 1));
	if (!mprotect(begin, (size_t)page, PROT_READ | PROT_WRITE) || errno != EACCES)
		return REMOTE_WRONG;
	/* A write through /proc/self/mem, which ignores protections, changes nothing. */
	FILE *memory = fopen("/proc/self/mem", "r+");
	uint64_t eight = 8;
	if (memory && !fseeko(memory, (off_t)(uintptr_t)value, SEEK_SET)) {
		setvbuf(memory, NULL, _IONBF, 0);
		(void)!fwrite(&eight, sizeof(eight), 1, memory);
	}
	if (memory)
		fclose(memory);
	if (FAILED(remote_signal(&d, fence, 9)) || *value != 9 || FAILED(wait_for(&d, fence, 9)))
		return REMOTE_WRONG;
	remote_close(&d);
	return REMOTE_DONE;
}

/* ---- cycle: many short lives of a connection in one program ---- */

int remote_cycle(const char *socket, const char *count)
{
	for (unsigned long i = strtoul(count, NULL, 0); i > 0; i--) {
		struct remote_device d;

		remote_open(&d, socket, "cycle", REMOTE_SOFTGPU);
		D3DKMT_HANDLE handle =
			client_allocate(&d.device, 8192, SOFTGPU_ALLOCATION_CPU_VISIBLE);
		client_write(&d.device, handle, 8192, (uint32_t)i);
		client_expect(&d.device, handle, 8192, (uint32_t)i);
		remote_close(&d);
	}
	return REMOTE_DONE;
}
