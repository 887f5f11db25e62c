/* SPDX-License-Identifier: MIT */
/*
 * A probe between port and softgpu: every table that softgpu registers is replaced by one that logs
 * the calls of memory management with their arguments, and that lets a test change an answer. The
 * program is linked with --wrap=DxgkInitialize, so softgpu itself is unchanged.
 *
 * It supports one world at a time. The log may be read while the adapter is idle.
 */
#ifndef VMM_TESTS_CONFORMANCE_PROBE_H
#define VMM_TESTS_CONFORMANCE_PROBE_H

#include <support/test.h>

#include <d3dkmddi.h>
#include <dispmprt.h>

enum probe_ddi {
	PROBE_CREATE = 1, /* an entry per allocation; count 0: an empty resource */
	PROBE_DESTROY,    /* an entry per allocation; object NULL and flags 1: the resource alone */
	PROBE_OPEN,
	PROBE_CLOSE,
	PROBE_RENDER,
	PROBE_PATCH,
	PROBE_SUBMIT,
	PROBE_PAGING,
	PROBE_ACQUIRE, /* a swizzling range */
	PROBE_RELEASE,
	PROBE_STOP
};

struct probe_call {
	uint32_t ddi;
	NTSTATUS status;
	HANDLE object; /* allocation, open allocation or context */
	HANDLE device; /* of OPEN and CLOSE */
	uint32_t flags;
	uint32_t count; /* of allocations in the call */
	uint32_t fence;
	/* of PAGING: as the call came in, and what it wrote */
	DXGKARG_BUILDPAGINGBUFFER paging;
	uint64_t written_bytes;
	/* of ACQUIRE; of RELEASE the first three members only */
	DXGKARG_ACQUIRESWIZZLINGRANGE range;
	DXGK_ALLOCATIONLIST list[4]; /* of RENDER and PATCH: the first entries */
};

enum { PROBE_CALLS = 8192 };

struct probe {
	struct probe_call call[PROBE_CALLS];
	uint32_t calls;

	/*
	 * Changes to softgpu's answers; NULL or 0 leaves the answer as it is. `context` is for the
	 * functions.
	 */
	void *context;
	void (*edit_caps)(void *context, DXGK_DRIVERCAPS *caps);
	void (*edit_segments)(void *context, DXGK_QUERYSEGMENTOUT3 *out);
	void (*edit_allocation)(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index);
	/* Called before softgpu sees the call. Returning true answers the call with *status. */
	bool (*answer_paging)(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status);
	bool (*answer_acquire)(void *context, DXGKARG_ACQUIRESWIZZLINGRANGE *args,
			       NTSTATUS *status);
	/*
	 * the answer of the next creation; softgpu's work is undone, but its handles are not
	 * cleared
	 */
	NTSTATUS create_status;
	NTSTATUS open_status; /* the same for the next open */
	/* 1 to n: hDeviceSpecificAllocation of that element is NULL in the next open */
	uint32_t open_null;
};
extern struct probe probe;

void probe_reset(void);
void probe_forget(void); /* clears the log only */
/*
 * Number of calls of that kind. PROBE_PAGING: of that operation (-1: any) for that allocation
 * (NULL: any).
 */
uint32_t probe_count(uint32_t ddi);
uint32_t probe_paging_count(int operation, HANDLE allocation);
/* The index-th such call (from 0), or NULL if there are fewer. */
const struct probe_call *probe_find(uint32_t ddi, uint32_t index);
const struct probe_call *probe_find_paging(int operation, HANDLE allocation, uint32_t index);
/* Position in the log: of two calls the earlier one has the lower position. */
uint32_t probe_position(const struct probe_call *call);
/* softgpu's own answer, for an answer_paging that cuts an operation into pieces. */
NTSTATUS probe_softgpu_paging(DXGKARG_BUILDPAGINGBUFFER *args);
/* The miniport's handle of the allocation that was created last. */
HANDLE probe_last_created(void);

#endif
