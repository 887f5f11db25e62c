/* SPDX-License-Identifier: MIT */
/*
 * Later interface versions of the scripted miniport: the length of its table, and the entries that
 * came with 2.0.
 */
#include "scripted_miniport.h"

#include <stdlib.h>
#include <string.h>

#define HOST_APERTURE 0x2000u /* DXGK_SEGMENTFLAGS */
#define PAGES_64K     0x800u

enum { NOT_THERE = 0xA5 };

/* An entry removed for a lower version stays empty. */
static void put_back(char *table, size_t end)
{
	char gone[sizeof(void *)];

	memset(gone, NOT_THERE, sizeof(gone));
	for (size_t i = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiAddDevice);
	     i + sizeof(gone) <= end; i += sizeof(gone))
		if (!memcmp(table + i, gone, sizeof(gone)))
			memset(table + i, 0, sizeof(gone));
}

void scripted_set_version(struct scripted_miniport *m, ULONG version)
{
	size_t end = sizeof(m->settings.table);

	if (version < DXGKDDI_INTERFACE_VERSION_WDDM3_1)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiCreateNativeFence);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM3_0)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiSetAllocationBackingStore);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_9)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiSetFlipQueueLogBuffer);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_1)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiCheckMultiPlaneOverlaySupport3);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM2_0)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiRenderGdi);
	if (version < DXGKDDI_INTERFACE_VERSION_WDDM1_3)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiGetNodeMetadata);
	if (version < DXGKDDI_INTERFACE_VERSION_WIN8)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiSetPowerComponentFState);
	if (version < DXGKDDI_INTERFACE_VERSION_WIN7)
		end = offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiDescribePageTable);
	m->settings.table.Version = version;
	if (version >= DXGKDDI_INTERFACE_VERSION_WDDM2_0)
		m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	put_back((char *)&m->settings.table, end);
	memset((char *)&m->settings.table + end, NOT_THERE, sizeof(m->settings.table) - end);
}

NTSTATUS APIENTRY scripted_set_backing_store(IN_CONST_HANDLE adapter,
					     IN_CONST_PDXGKARG_SETALLOCATIONBACKINGSTORE args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(m,
			    scripted_begin(m, VIDMM_DDI_SET_ALLOCATION_BACKING_STORE, NULL, args,
					   sizeof(*args)),
			    NULL);
}

NTSTATUS APIENTRY scripted_validate_property(IN_CONST_HANDLE adapter,
					     IN_CONST_PDXGKARG_VALIDATEUPDATEALLOCPROPERTY args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(m,
			    scripted_begin(m, VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY, NULL,
					   args, sizeof(*args)),
			    NULL);
}

/* ---- events of clients ---- */

NTSTATUS APIENTRY scripted_create_cpu_event(IN_CONST_HANDLE adapter,
					    INOUT_PDXGKARG_CREATECPUEVENT args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_CREATE_CPU_EVENT, NULL, args, sizeof(*args));

	if (!call->forced) {
		args->hKmdCpuEvent = (char *)m + 1 + m->live_events++;
		call->handle = args->hKmdCpuEvent;
	}
	return scripted_end(m, call, args);
}

NTSTATUS APIENTRY scripted_destroy_cpu_event(IN_CONST_HANDLE adapter, IN_CONST_HANDLE event)
{
	struct scripted_miniport *m = adapter;

	m->live_events--;
	return scripted_end(m, scripted_begin(m, VIDMM_DDI_DESTROY_CPU_EVENT, event, NULL, 0),
			    NULL);
}

NTSTATUS APIENTRY scripted_escape(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_ESCAPE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_ESCAPE, NULL, args, sizeof(*args));

	if (args->PrivateDriverDataSize == sizeof(call->usage))
		memcpy(&call->usage, args->pPrivateDriverData, sizeof(call->usage));
	return scripted_end(m, call, args->pPrivateDriverData);
}

/* ---- the CPU host aperture ---- */

static uint64_t page_bytes(const struct scripted_segment *s)
{
	return s->flags & PAGES_64K ? 65536 : 4096;
}

void scripted_host_start(struct scripted_miniport *m)
{
	for (uint32_t i = 0; i < m->settings.segment_count; i++) {
		const struct scripted_segment *s = &m->settings.segment[i];

		if (!(s->flags & HOST_APERTURE) || m->shows[i])
			continue;
		m->shown_at[i] = calloc(s->size_bytes / page_bytes(s), sizeof(uint32_t));
		m->shows[i] = calloc(s->host_pages + 1, sizeof(uint32_t));
		if (!m->shown_at[i] || !m->shows[i])
			abort();
	}
}

void scripted_host_stop(struct scripted_miniport *m)
{
	for (uint32_t i = 0; i < SCRIPTED_SEGMENTS_MAX; i++) {
		free(m->shown_at[i]);
		free(m->shows[i]);
		m->shown_at[i] = m->shows[i] = NULL;
	}
	m->shown = 0;
}

static char *aperture_page(const struct scripted_miniport *m, uint32_t segment, uint32_t page)
{
	const struct scripted_segment *s = &m->settings.segment[segment - 1];

	return m->bar + s->host_offset + page * page_bytes(s);
}

char *scripted_host_bytes(const struct scripted_miniport *m, uint32_t segment, uint64_t offset,
			  uint64_t *run)
{
	uint64_t size = page_bytes(&m->settings.segment[segment - 1]);
	uint32_t at;

	*run = size - offset % size;
	if (!m->shown_at[segment - 1])
		return NULL;
	at = m->shown_at[segment - 1][offset / size];
	return at ? aperture_page(m, segment, at - 1) + offset % size : NULL;
}

/* A page that is mapped already, or not there, must not be requested: a fault. */
static void show(struct scripted_miniport *m, uint32_t segment, uint32_t page, uint64_t of)
{
	const struct scripted_segment *s = &m->settings.segment[segment - 1];

	if (page >= s->host_pages || of >= s->size_bytes / page_bytes(s) ||
	    m->shows[segment - 1][page] || m->shown_at[segment - 1][of]) {
		m->faults++;
		return;
	}
	memcpy(aperture_page(m, segment, page), m->hidden[segment - 1] + of * page_bytes(s),
	       page_bytes(s));
	m->shows[segment - 1][page] = (uint32_t)of + 1;
	m->shown_at[segment - 1][of] = page + 1;
	m->shown++;
}

/* A later access to the aperture page finds that it is unmapped. */
static void unshow(struct scripted_miniport *m, uint32_t segment, uint32_t page)
{
	const struct scripted_segment *s = &m->settings.segment[segment - 1];
	uint32_t of = page < s->host_pages ? m->shows[segment - 1][page] : 0;

	if (!of) {
		m->faults++;
		return;
	}
	memcpy(m->hidden[segment - 1] + (of - 1) * page_bytes(s), aperture_page(m, segment, page),
	       page_bytes(s));
	memset(aperture_page(m, segment, page), 0xEE, page_bytes(s));
	m->shows[segment - 1][page] = m->shown_at[segment - 1][of - 1] = 0;
	m->shown--;
}

static void *copy_of(const void *list, uint64_t count, size_t size)
{
	void *copy = malloc(count * size + 1);

	if (!copy)
		abort();
	return memcpy(copy, list, count * size);
}

NTSTATUS APIENTRY scripted_map_host(IN_CONST_HANDLE adapter,
				    IN_CONST_PDXGKARG_MAPCPUHOSTAPERTURE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_MAP_CPU_HOST_APERTURE, NULL, args, sizeof(*args));

	call->host_pages =
		copy_of(args->pCpuHostAperturePages, args->NumberOfPages, sizeof(UINT32));
	call->segment_pages =
		copy_of(args->pMemorySegmentPages, args->NumberOfPages, sizeof(UINT64));
	for (uint64_t i = 0; i < args->NumberOfPages && !call->forced; i++)
		show(m, args->SegmentId, args->pCpuHostAperturePages[i],
		     args->pMemorySegmentPages[i]);
	return scripted_end(m, call, NULL);
}

NTSTATUS APIENTRY scripted_unmap_host(IN_CONST_HANDLE adapter,
				      IN_CONST_PDXGKARG_UNMAPCPUHOSTAPERTURE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_UNMAP_CPU_HOST_APERTURE, NULL, args, sizeof(*args));

	call->host_pages =
		copy_of(args->pCpuHostAperturePages, args->NumberOfPages, sizeof(UINT32));
	for (uint64_t i = 0; i < args->NumberOfPages && !call->forced; i++)
		unshow(m, args->SegmentId, args->pCpuHostAperturePages[i]);
	return scripted_end(m, call, NULL);
}
