/* SPDX-License-Identifier: MIT */
/*
 * Allocations over memory of the client (ADOPT, ADOPTED): its answers on the view socket, and what
 * it does with the memory later.
 */
#include <d3dumddi.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vidmm/softgpu.h>

#include "hostile.h"
#include "wire/protocol.h"

enum { BYTES = 8 * 4096, MOMENT_MS = 200 };
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/*
 * A memfd with the required seals, without them, or with seals that forbid writes of other
 * processes.
 */
static int memory(uint32_t way)
{
	static const int seals[] = {F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW, 0,
				    F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE,
				    F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL};
	int fd = memfd_create("adopted", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return fd;
	(void)!ftruncate(fd, way & 8 ? BYTES / 2 : BYTES);
	(void)fcntl(fd, F_ADD_SEALS, seals[way % 5]);
	return fd;
}

static bool await_question(struct hostile *h, struct hostile_connection *c)
{
	struct pollfd come = {.fd = c->view, .events = POLLIN};

	c->asked = 0;
	while (!c->asked && c->view >= 0 && poll(&come, 1, MOMENT_MS) == 1 &&
	       !(come.revents & (POLLHUP | POLLERR)))
		hostile_drain(h, c);
	return c->asked != 0;
}

static void answer(struct hostile *h, const struct hostile_connection *c, uint32_t way,
		   uint32_t offset, int fd)
{
	const bool bare = way & 16;
	const struct vmm_message_adopted m = {
		.head = {VMM_PROTOCOL_MAGIC, VMM_MESSAGE_ADOPTED, 0, !bare && fd >= 0},
		.number = c->asked + (way & 32 ? 1 : 0),
		.status = bare ? (int32_t)0xC000000D : 0,
		.offset = offset & 1 ? (uint64_t)offset << 56 : (uint64_t)(offset >> 1) * 2048,
	};

	(void)hostile_send(h, c->view, &m, way & 64 ? sizeof(m) - 8 : sizeof(m), NULL, 0, &fd,
			   m.head.descriptors);
}

void hostile_adopt(struct hostile *h, struct hostile_connection *c, uint32_t way, uint32_t offset)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
						   SOFTGPU_ALLOCATION_EXISTING_SYSTEM,
					  .size_bytes = BYTES};
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = (void *)(uintptr_t)0x10000000,
				      .pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE create = {.NumAllocations = 1, .pAllocationInfo = &info};

	if (!hostile_is_free(h, c) || !hostile_ask(h, c, "pfnAllocateCb", &create) ||
	    !await_question(h, c))
		return;
	int fd = memory(way);
	answer(h, c, way, offset, fd);
	if (fd < 0)
		return;
	/*
	 * Pages of the shared memory are removed and come back, and it is sealed against writing,
	 * while the host uses it.
	 */
	(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES);
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	(void)!ftruncate(fd, 0);
	close(fd);
}
