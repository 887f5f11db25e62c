/* SPDX-License-Identifier: MIT */
/* Valid calls, so that the invalid steps in between meet a host with state to corrupt. */
#include <d3dumddi.h>
#include <string.h>
#include <unistd.h>

#include <vidmm/softgpu.h>

#include "hostile.h"
#include "wire/protocol.h"

/* Of each operation: calls with an answer that was waited for, and those that succeeded. */
enum { OPERATIONS_MAX = 256 };
static struct {
	uint64_t calls, done;
} counts[OPERATIONS_MAX];

static const struct vmm_wire_operation *operation(const char *name)
{
	for (uint32_t i = 0; i < vmm_wire_operation_count; i++)
		if (!strcmp(vmm_wire_operations[i].name, name))
			return &vmm_wire_operations[i];
	vmm_assert(!"a function of the table");
	return NULL;
}

static void bend(const struct hostile *h, struct vmm_wire_call *call)
{
	uint32_t length = call->request.length, at = length ? h->bend.at % length : 0;
	uint32_t word = h->bend.value & 0x80 ? UINT32_MAX - (h->bend.value & 0x7F) : h->bend.value;

	if (h->bend.how == HOSTILE_BEND_BYTE && length)
		call->request.data[at] = (uint8_t)h->bend.value;
	else if (h->bend.how == HOSTILE_BEND_WORD && length >= 4)
		memcpy(call->request.data + at % (length / 4) * 4, &word, sizeof(word));
	else if (h->bend.how == HOSTILE_BEND_LENGTH)
		call->request.length = at;
}

/*
 * What the host knows of a handle in a valid call. Other fences than that of hostile_virtual.c are
 * a guess, as in drawn arguments.
 */
static enum vmm_wire_values values_of(void *context, uint32_t handle)
{
	const struct hostile *h = context;

	return handle == h->gpu.fence ? VMM_WIRE_VALUES_ARRAY : draw_values_of(NULL, handle);
}

static bool ask(struct hostile *h, struct hostile_connection *c, struct vmm_wire_call *call,
		const struct vmm_wire_operation *of, const void *argument)
{
	int fds[VMM_WIRE_DESCRIPTORS_MAX];
	struct vmm_message_request m = {
		.head = {VMM_PROTOCOL_MAGIC, VMM_MESSAGE_REQUEST, 0, 0},
		.operation = of->number,
		.device = of->number > 1000 && of->number < 2000 ? c->device : 0,
		.tag = ++h->tag,
	};

	if (!vmm_ok(vmm_wire_make_request(call, of, argument)) ||
	    call->request.length > VMM_PROTOCOL_INLINE_MAX)
		return false;
	bend(h, call);
	m.head.bytes = call->request.length;
	m.head.descriptors = call->descriptor_count;
	for (uint32_t i = 0; i < call->descriptor_count; i++)
		fds[i] = (int)call->descriptors[i];
	h->requests++;
	c->pending++;
	return hostile_send(h, c->fd, &m, sizeof(m), call->request.data, call->request.length, fds,
			    call->descriptor_count);
}

/*
 * Waits for the answer to the last request on the channel. An earlier answer is accepted as well.
 */
static bool take_answer(struct hostile *h, struct hostile_connection *c, struct vmm_wire_call *call,
			void *argument)
{
	static _Alignas(8) uint8_t message[VMM_PROTOCOL_INLINE_MAX + 256];
	const struct vmm_message_answer *answer = (const void *)message;
	size_t bytes;

	do {
		bytes = sizeof(message);
		if (!hostile_receive(h, c, message, &bytes, true) || h->wrong || !bytes)
			return false;
	} while (bytes < sizeof(*answer) || answer->head.kind != VMM_MESSAGE_ANSWER ||
		 answer->tag != h->tag);
	if (!answer->answered || answer->status < 0)
		return false;
	counts[call->operation - vmm_wire_operations].done++;
	/* NT handles are the descriptors that arrived. */
	call->descriptor_count = 0;
	return vmm_ok(vmm_wire_read_answer(call, message + sizeof(*answer),
					   (uint32_t)(bytes - sizeof(*answer)), argument));
}

bool hostile_call(struct hostile *h, struct hostile_connection *c, const char *name, void *argument)
{
	struct vmm_wire_call call = {.values = values_of, .context = h};
	const struct vmm_wire_operation *of = operation(name);
	bool done = ask(h, c, &call, of, argument) && take_answer(h, c, &call, argument);

	vmm_wire_finish(&call);
	vmm_assert(of - vmm_wire_operations < OPERATIONS_MAX);
	counts[of - vmm_wire_operations].calls++;
	return done;
}

void hostile_print_counts(FILE *out)
{
	fprintf(out, "# calls that succeeded, of those of hostile_call\n");
	for (uint32_t i = 0; i < vmm_wire_operation_count && i < OPERATIONS_MAX; i++)
		if (counts[i].calls)
			fprintf(out, "# %10llu of %10llu %s\n", (unsigned long long)counts[i].done,
				(unsigned long long)counts[i].calls, vmm_wire_operations[i].name);
}

bool hostile_ask(struct hostile *h, struct hostile_connection *c, const char *name,
		 const void *argument)
{
	struct vmm_wire_call call = {.values = values_of, .context = h};
	bool sent = ask(h, c, &call, operation(name), argument);

	vmm_wire_finish(&call);
	return sent;
}

static uint32_t any(struct hostile *h)
{
	return h->pool_count ? h->pool[draw_below(&h->draw, h->pool_count)] : 0;
}

static void make_device(struct hostile *h, struct hostile_connection *c)
{
	struct vmm_wire_device_create create = {.adapter = 0};
	D3DKMT_ADAPTERINFO adapters[2];
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 2, .pAdapters = adapters};

	if (hostile_call(h, c, "device_create", &create)) {
		c->device = create.device;
		hostile_learn(h, create.device);
	}
	if (!hostile_call(h, c, "D3DKMTEnumAdapters2", &list) || list.NumAdapters == 0)
		return;
	hostile_learn(h, adapters[0].hAdapter);
	D3DKMT_CREATEDEVICE device = {.hAdapter = adapters[0].hAdapter};
	if (hostile_call(h, c, "D3DKMTCreateDevice", &device))
		hostile_learn(h, device.hDevice);
}

static void make_context(struct hostile *h, struct hostile_connection *c)
{
	D3DDDICB_CREATECONTEXT create = {.EngineAffinity = 1};

	if (hostile_call(h, c, "pfnCreateContextCb", &create)) {
		c->context = (uint64_t)(uintptr_t)create.hContext;
		hostile_learn(h, (uint32_t)c->context);
	}
}

static void allocate(struct hostile *h, struct hostile_connection *c, bool shared)
{
	struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE | draw_below(&h->draw, 4) * 2u,
		.size_bytes = (1 + draw_below(&h->draw, 64)) * 4096u,
		.renaming_limit = draw_below(&h->draw, 4),
	};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE create = {.NumAllocations = 1,
				    .pAllocationInfo = &info,
				    .hResource = shared ? (HANDLE)(uintptr_t)++h->tag : NULL};
	struct vmm_wire_resource_set_shared set = {.device = c->device,
						   .resource = create.hResource};
	struct vmm_wire_resource_share share = {.device = c->device};

	if (shared && !hostile_call(h, c, "resource_set_shared", &set))
		return;
	if (!hostile_call(h, c, "pfnAllocateCb", &create))
		return;
	hostile_learn(h, info.hAllocation);
	share.km_resource = create.hKMResource;
	if (shared && hostile_call(h, c, "resource_share", &share))
		hostile_learn(h, share.global_handle);
}

static void lock(struct hostile *h, struct hostile_connection *c)
{
	D3DDDICB_LOCK args = {.hAllocation = any(h),
			      .Flags.Value =
				      draw_below(&h->draw, 4) ? 0 : draw_below(&h->draw, 512)};

	if (hostile_call(h, c, "pfnLockCb", &args))
		hostile_learn(h, args.hAllocation);
	hostile_drain(h, c);
}

static void unlock(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_HANDLE handle = any(h);
	D3DDDICB_UNLOCK args = {.NumAllocations = 1, .phAllocations = &handle};

	(void)hostile_call(h, c, "pfnUnlockCb", &args);
}

/* Renders the present contents of the buffers. */
static void render(struct hostile *h, struct hostile_connection *c)
{
	D3DDDICB_RENDER args = {
		.CommandLength = draw_below(&h->draw, 40) * 8,
		.NumAllocations = draw_below(&h->draw, 4),
		.NumPatchLocations = draw_below(&h->draw, 4),
		.hContext = (HANDLE)(uintptr_t)c->context,
	};

	if (draw_below(&h->draw, 4) == 0) /* no commands */
		args.CommandLength = args.NumAllocations = args.NumPatchLocations = 0;
	(void)hostile_call(h, c, "pfnRenderCb", &args);
	hostile_drain(h, c);
}

static void make_fence(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = any(h),
		.Info = {.Type = D3DDDI_MONITORED_FENCE,
			 .Flags.Value = draw_below(&h->draw, 2) ? 3 : 0},
	};
	HANDLE nt = NULL;
	D3DKMT_SHAREOBJECTS share = {
		.ObjectCount = 1, .DesiredAccess = 0x20000, .pSharedNtHandle = &nt};

	if (!hostile_call(h, c, "D3DKMTCreateSynchronizationObject2", &create))
		return;
	hostile_learn(h, create.hSyncObject);
	hostile_drain(h, c);
	share.ObjectHandleArray = &create.hSyncObject;
	(void)hostile_call(h, c, "D3DKMTShareObjects", &share);
}

/*
 * Waits for a value that is never signaled. Does not wait for the answer: the channel is busy until
 * its end.
 */
static void wait_for_ever(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_HANDLE handle = any(h);
	UINT64 value = 1000;
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = any(h),
							   .ObjectCount = 1,
							   .ObjectHandleArray = &handle,
							   .FenceValueArray = &value};
	struct vmm_wire_call call = {.values = values_of, .context = h};

	(void)ask(h, c, &call, operation("D3DKMTWaitForSynchronizationObjectFromCpu"), &args);
	vmm_wire_finish(&call);
}

static void open_nt_handle(struct hostile *h, struct hostile_connection *c)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args = {.hDevice = any(h)};

	if (!h->descriptor_count)
		return;
	args.hNtHandle =
		(HANDLE)(intptr_t)h->descriptors[draw_below(&h->draw, h->descriptor_count)];
	if (hostile_call(h, c, "D3DKMTOpenSyncObjectFromNtHandle2", &args))
		hostile_learn(h, args.hSyncObject);
}

static void open_shared(struct hostile *h, struct hostile_connection *c)
{
	uint32_t allocations[4] = {0};
	struct vmm_wire_resource_open args = {.device = c->device,
					      .global_handle = any(h),
					      .allocation_count = 4,
					      .allocations = allocations};

	if (hostile_call(h, c, "resource_open", &args))
		hostile_learn(h, allocations[0]);
}

void hostile_deep(struct hostile *h, struct hostile_connection *c, uint32_t what)
{
	if (!c->welcome || !hostile_is_free(h, c))
		return;
	if (!c->device) {
		make_device(h, c);
		return;
	}
	switch (what % 12) {
	case 0:
		make_context(h, c);
		break;
	case 1:
	case 2:
		allocate(h, c, what & 16);
		break;
	case 3:
	case 4:
		lock(h, c);
		break;
	case 5:
		unlock(h, c);
		break;
	case 6:
	case 7:
		render(h, c);
		break;
	case 8:
		make_fence(h, c);
		break;
	case 9:
		if (what & 16)
			wait_for_ever(h, c);
		break;
	case 10:
		open_nt_handle(h, c);
		break;
	default:
		open_shared(h, c);
		break;
	}
}

void hostile_draw_one(struct hostile *h, struct hostile_connection *c, uint32_t which)
{
	const struct vmm_wire_operation *of =
		&vmm_wire_operations[which % vmm_wire_operation_count];
	struct vmm_wire_call call = {.values = draw_values_of};
	uint8_t *argument = draw_block(&h->draw, vmm_wire_argument_bytes(of));

	draw_record(&h->draw, of->argument, argument);
	(void)ask(h, c, &call, of, argument);
	vmm_wire_finish(&call);
	draw_forget(&h->draw);
}

void hostile_draw(struct hostile *h, struct hostile_connection *c)
{
	hostile_draw_one(h, c, draw_below(&h->draw, vmm_wire_operation_count));
}
