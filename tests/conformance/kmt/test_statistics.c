/* SPDX-License-Identifier: MIT */
/*
 * D3DKMTQueryStatistics (QST): each figure is compared with the event stream, with the library's
 * own statistics, or with what the test did.
 */
#include "kmt_world.h"

#include "base/base.h"

#include <stdatomic.h>
#include <string.h>

enum { ALLOCATIONS = 6 }; /* of 1 MiB; video memory has 4 */

struct tally {
	_Atomic uint64_t count, bytes;
};

struct fixture {
	struct kmt_world w;
	D3DKMT_QUERYSTATISTICS args;
	D3DKMT_HANDLE allocation[ALLOCATIONS];
	struct client_context context;
	/* from the event stream */
	struct tally created, destroyed, page_ins, evictions, mapped, filled, in, out, renders,
		paging;
};

static void add(struct tally *tally, uint64_t bytes)
{
	tally->count++;
	tally->bytes += bytes;
}

static void on_residency(struct fixture *f, const struct vidmm_event *event)
{
	bool left = event->arg[1] && !event->arg[2];

	if (event->reason == VIDMM_RESIDENCY_REFERENCED && event->arg[2])
		add(&f->page_ins, event->arg[0]);
	if (left && event->reason == VIDMM_RESIDENCY_PRESSURE)
		add(&f->evictions, event->arg[0]);
}

static void on_paging(struct fixture *f, const struct vidmm_event *event)
{
	switch (event->reason) {
	case VIDMM_PAGING_FILL:
		add(&f->filled, event->arg[0]);
		break;
	case VIDMM_PAGING_TRANSFER:
		add(event->arg[2] ? &f->in : &f->out, event->arg[0]);
		break;
	case VIDMM_PAGING_MAP_APERTURE:
		add(&f->mapped, event->arg[0]);
		break;
	default:
		break;
	}
}

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct fixture *f = context;

	(void)text;
	switch (event->type) {
	case VIDMM_EVENT_CREATE:
		add(&f->created, event->arg[0]);
		break;
	case VIDMM_EVENT_DESTROY:
		add(&f->destroyed, event->arg[0]);
		break;
	case VIDMM_EVENT_RESIDENCY:
		on_residency(f, event);
		break;
	case VIDMM_EVENT_PAGING:
		on_paging(f, event);
		break;
	case VIDMM_EVENT_QUEUE:
		add(event->reason ? &f->paging : &f->renders, 0);
		break;
	default:
		break;
	}
}

static void start(struct fixture *f, void **state)
{
	const uint64_t mask = 1ull << VIDMM_EVENT_CREATE | 1ull << VIDMM_EVENT_DESTROY |
			      1ull << VIDMM_EVENT_RESIDENCY | 1ull << VIDMM_EVENT_PAGING |
			      1ull << VIDMM_EVENT_QUEUE;

	memset(f, 0, sizeof(*f));
	kmt_start(&f->w, state);
	assert_int_not_equal(vidmm_subscribe(f->w.client.host, mask, on_event, f), 0);
	f->w.client.reasons = 0;
}

static NTSTATUS ask(struct fixture *f, uint32_t type, uint32_t index)
{
	memset(&f->args, 0, sizeof(f->args));
	memset(&f->args.QueryResult, 0xA5, sizeof(f->args.QueryResult));
	f->args.Type = (D3DKMT_QUERYSTATISTICS_TYPE)type;
	f->args.AdapterLuid = f->w.luid;
	f->args.QuerySegment.SegmentId = index;
	return D3DKMTQueryStatistics(&f->args);
}

static void untouched(const struct fixture *f)
{
	const unsigned char *byte = (const unsigned char *)&f->args.QueryResult;

	for (size_t i = 0; i < sizeof(f->args.QueryResult); i++)
		assert_int_equal(byte[i], 0xA5);
}

static const D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION *adapter(struct fixture *f)
{
	assert_int_equal(ask(f, D3DKMT_QUERYSTATISTICS_ADAPTER, 0), STATUS_SUCCESS);
	return &f->args.QueryResult.AdapterInformation;
}

static const D3DKMT_QUERYSTATISTICS_SEGMENT_INFORMATION *segment(struct fixture *f, uint32_t index)
{
	assert_int_equal(ask(f, D3DKMT_QUERYSTATISTICS_SEGMENT, index), STATUS_SUCCESS);
	return &f->args.QueryResult.SegmentInformation;
}

static const D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_INFORMATION *own(struct fixture *f,
								     uint32_t index)
{
	assert_int_equal(ask(f, D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT, index), STATUS_SUCCESS);
	return &f->args.QueryResult.ProcessSegmentInformation;
}

static const D3DKMT_QUERYSTATISTICS_NODE_INFORMATION *node(struct fixture *f, uint32_t index)
{
	assert_int_equal(ask(f, D3DKMT_QUERYSTATISTICS_NODE, index), STATUS_SUCCESS);
	return &f->args.QueryResult.NodeInformation;
}

static const D3DKMT_QUERYSTATISTICS_PROCESS_NODE_INFORMATION *own_node(struct fixture *f,
								       uint32_t index)
{
	assert_int_equal(ask(f, D3DKMT_QUERYSTATISTICS_PROCESS_NODE, index), STATUS_SUCCESS);
	return &f->args.QueryResult.ProcessNodeInformation;
}

/* Fills each allocation once; video memory cannot hold them all. */
static void work(struct fixture *f)
{
	D3DKMT_RENDER render = {0};

	kmt_context(&f->w, &f->context);
	for (uint32_t i = 0; i < ALLOCATIONS; i++)
		f->allocation[i] = kmt_allocate(&f->w, MIB);
	for (uint32_t i = 0; i < ALLOCATIONS; i++) {
		client_fill(&f->context, f->allocation[i], MIB, i);
		client_stall(&f->context, 1000 * 1000);
		assert_int_equal(kmt_render(&f->context, &render), STATUS_SUCCESS);
	}
	client_idle(&f->w.client);
}

/* ---- the tests ---- */

static void qst_01_adp_06_the_adapter_is_named_by_its_luid(void **state)
{
	struct fixture f;

	start(&f, state);
	assert_int_equal(D3DKMTQueryStatistics(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&f.w, "HND-11");
	f.w.luid.HighPart = 1;
	assert_int_equal(ask(&f, D3DKMT_QUERYSTATISTICS_ADAPTER, 0), STATUS_INVALID_PARAMETER);
	kmt_found(&f.w, "ADP-06");
	untouched(&f);
	f.w.luid.HighPart = 0;
	f.w.luid.LowPart += 100;
	assert_int_equal(ask(&f, D3DKMT_QUERYSTATISTICS_ADAPTER, 0), STATUS_INVALID_PARAMETER);
	kmt_found(&f.w, "ADP-06");
	f.w.luid.LowPart -= 100;
	/* what nothing counts is 0; the query members are not written */
	const D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION *a = adapter(&f);
	assert_int_equal(a->NbSegments, 2);
	assert_int_equal(a->NodeCount, 2);
	assert_int_equal(a->VidPnSourceCount, 0);
	assert_int_equal(a->TdrDetectedCount, 0);
	assert_int_equal(a->Locks.NbLocks, 0);
	assert_int_equal(a->Reserved[6], 0);
	kmt_stop(&f.w);
}

static void qst_02_unknown_and_unbuilt_types_are_refused(void **state)
{
	static const uint32_t unknown[] = {11, 1000, UINT32_MAX};
	struct fixture f;

	start(&f, state);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(unknown); i++) {
		assert_int_equal(ask(&f, unknown[i], 0), STATUS_INVALID_PARAMETER);
		kmt_found(&f.w, "QST-02");
		untouched(&f);
	}
	assert_int_equal(ask(&f, D3DKMT_QUERYSTATISTICS_PHYSICAL_ADAPTER, 0), STATUS_NOT_SUPPORTED);
	kmt_told(&f.w, STATUS_NOT_SUPPORTED, "QST-02");
	untouched(&f);
	kmt_stop(&f.w);
}

static void qst_02_hnd_07_another_process_cannot_be_queried(void **state)
{
	static const uint32_t types[] = {
		D3DKMT_QUERYSTATISTICS_PROCESS, D3DKMT_QUERYSTATISTICS_PROCESS_ADAPTER,
		D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT, D3DKMT_QUERYSTATISTICS_PROCESS_NODE};
	struct fixture f;

	start(&f, state);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(types); i++) {
		assert_int_equal(ask(&f, types[i], 0), STATUS_SUCCESS);
		memset(&f.args.QueryResult, 0xA5, sizeof(f.args.QueryResult));
		f.args.hProcess = (HANDLE)(uintptr_t)4711;
		assert_int_equal(D3DKMTQueryStatistics(&f.args), STATUS_INVALID_HANDLE);
		kmt_found(&f.w, "HND-07");
		untouched(&f);
		f.args.hProcess = (HANDLE)(intptr_t)-1;
		assert_int_equal(D3DKMTQueryStatistics(&f.args), STATUS_SUCCESS);
	}
	kmt_stop(&f.w);
}

static void qst_03_the_adapters_figures_are_those_of_the_event_stream(void **state)
{
	struct fixture f;
	struct vidmm_adapter_statistics known = {.struct_size = sizeof(known)};

	start(&f, state);
	work(&f);
	assert_int_equal(kmt_destroy(&f.w, 0, f.allocation, 2), STATUS_SUCCESS);
	client_idle(&f.w.client);
	const D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION *a = adapter(&f);
	vidmm_adapter_statistics(f.w.client.adapter, &known);
	assert_int_equal(a->Allocations.Created.Count, ALLOCATIONS);
	assert_int_equal(a->Allocations.Created.Count, f.created.count);
	assert_int_equal(a->Allocations.Created.Bytes, f.created.bytes);
	assert_int_equal(a->Allocations.Destroyed.Count, 2);
	assert_int_equal(a->Allocations.Destroyed.Count, f.destroyed.count);
	assert_int_equal(a->Allocations.Destroyed.Bytes, f.destroyed.bytes);
	assert_int_equal(a->PagingFault.Faults.Count, f.page_ins.count);
	assert_int_equal(a->PagingFault.Faults.Bytes, f.page_ins.bytes);
	assert_true(f.evictions.count >= 2);
	assert_int_equal(a->PagingFault.Evictions.Count, known.evictions);
	assert_int_equal(a->PagingFault.EvictionsDueToPreparation.Count, f.evictions.count);
	assert_int_equal(a->PagingFault.EvictionsDueToPreparation.Bytes, f.evictions.bytes);
	assert_int_equal(a->PagingTransfer.BytesFilled, f.filled.bytes);
	assert_int_equal(a->PagingTransfer.BytesFilled, known.bytes_filled);
	assert_int_equal(a->PagingTransfer.BytesMappedIntoAperture, f.mapped.bytes);
	assert_int_equal(a->PagingTransfer.BytesTransferredFromMdlToMemory, f.in.bytes);
	assert_int_equal(a->PagingTransfer.BytesTransferredFromMdlToMemory, known.bytes_paged_in);
	assert_int_equal(a->PagingTransfer.BytesTransferredFromMemoryToMdl, f.out.bytes);
	assert_int_equal(a->PagingTransfer.BytesTransferredFromMemoryToMdl, known.bytes_paged_out);
	assert_int_equal(a->Renaming.NbAllocationsRenamed, 0);
	kmt_stop(&f.w);
}

static void qst_03_renames_are_those_of_the_librarys_statistics(void **state)
{
	struct fixture f;
	struct vidmm_adapter_statistics known = {.struct_size = sizeof(known)};
	const uint32_t discard = 0x80;
	void *data;

	start(&f, state);
	work(&f);
	D3DKMT_HANDLE last = f.allocation[ALLOCATIONS - 1];
	for (uint32_t i = 0; i < 2; i++) {
		D3DKMT_RENDER render = {0};

		assert_int_equal(kmt_lock(&f.w, &last, discard, &data), STATUS_SUCCESS);
		assert_int_equal(kmt_unlock(&f.w, last), STATUS_SUCCESS);
		client_fill(&f.context, last, MIB, i);
		assert_int_equal(kmt_render(&f.context, &render), STATUS_SUCCESS);
		client_idle(&f.w.client);
	}
	const D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION *a = adapter(&f);
	vidmm_adapter_statistics(f.w.client.adapter, &known);
	assert_int_equal(a->Renaming.NbAllocationsRenamed, known.renames);
	assert_int_equal(known.renames, client_events(&f.w.client, VIDMM_EVENT_RENAME));
	assert_true(known.renames >= 1);
	kmt_stop(&f.w);
}

static void qst_04_segments_are_counted_from_0(void **state)
{
	struct fixture f;
	struct vidmm_adapter_statistics known = {.struct_size = sizeof(known)};
	uint64_t evicted = 0;

	start(&f, state);
	work(&f);
	vidmm_adapter_statistics(f.w.client.adapter, &known);
	for (uint32_t i = 0; i < 2; i++) {
		const D3DKMT_QUERYSTATISTICS_SEGMENT_INFORMATION *s = segment(&f, i);
		uint64_t by_class = 0;

		assert_int_equal(s->CommitLimit, known.segment[i].size_bytes);
		assert_int_equal(s->BytesResident, known.segment[i].resident_bytes);
		assert_int_equal(s->BytesCommitted, s->BytesResident);
		assert_int_equal(s->Memory.AllocsResident, known.segment[i].allocations);
		assert_int_equal(s->Memory.AllocsCommitted, s->Memory.AllocsResident);
		assert_int_equal(s->Aperture, i);
		for (uint32_t c = 0; c < 5; c++)
			by_class += s->TotalBytesEvictedByPriority[c];
		assert_int_equal(by_class, s->Memory.TotalBytesEvicted);
		/* all allocations have the normal priority */
		assert_int_equal(s->TotalBytesEvictedByPriority[2], by_class);
		evicted += by_class;
	}
	assert_true(evicted >= 2 * MIB);
	assert_int_equal(adapter(&f)->PagingFault.Evictions.Bytes, evicted);
	static const uint32_t absent[] = {2, 31, 32, UINT32_MAX};
	static const uint32_t types[] = {D3DKMT_QUERYSTATISTICS_SEGMENT,
					 D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT};
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(absent) * 2; i++) {
		assert_int_equal(ask(&f, types[i % 2], absent[i / 2]), STATUS_INVALID_PARAMETER);
		kmt_found(&f.w, "QST-04");
		untouched(&f);
	}
	kmt_stop(&f.w);
}

static void qst_05_a_process_has_the_allocations_that_it_created(void **state)
{
	struct fixture f;
	uint64_t resident = 0, preferred = 0;

	start(&f, state);
	work(&f);
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t in_segment = segment(&f, i)->BytesResident;
		const D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_INFORMATION *p = own(&f, i);
		uint64_t sum = p->VideoMemory.AllocsResidentInNonPreferred.Bytes;
		uint32_t count = p->VideoMemory.AllocsResidentInNonPreferred.Count;

		assert_int_equal(p->BytesCommitted, in_segment); /* there is no other process */
		for (uint32_t n = 0; n < 5; n++) {
			sum += p->VideoMemory.AllocsResidentInP[n].Bytes;
			count += p->VideoMemory.AllocsResidentInP[n].Count;
			preferred += p->VideoMemory.AllocsResidentInP[n].Bytes;
		}
		assert_int_equal(sum, p->BytesCommitted);
		assert_int_equal(count, p->VideoMemory.AllocsCommitted);
		resident += sum;
	}
	assert_true(resident >= 4 * MIB);
	assert_int_equal(ask(&f, D3DKMT_QUERYSTATISTICS_PROCESS_ADAPTER, 0), STATUS_SUCCESS);
	uint64_t committed = 0;
	for (uint32_t n = 0; n < 5; n++)
		committed += f.args.QueryResult.ProcessAdapterInformation.CommitmentData
				     .BytesBySegmentPreference[n];
	assert_int_equal(committed, preferred);
	assert_int_equal(f.args.QueryResult.ProcessAdapterInformation.NbSegments, 2);
	assert_int_equal(f.args.QueryResult.ProcessAdapterInformation.NodeCount, 2);
	assert_int_equal(ask(&f, D3DKMT_QUERYSTATISTICS_PROCESS, 0), STATUS_SUCCESS);
	const D3DKMT_QUERYSTATISTICS_PROCESS_INFORMATION *p =
		&f.args.QueryResult.ProcessInformation;
	assert_int_equal(p->NodeCount, 2);
	assert_true(p->SystemMemory.BytesAllocated >= 2 * MIB); /* what was evicted */
	assert_int_equal(p->SystemMemory.CachedBytesAllocated +
				 p->SystemMemory.WriteCombinedBytesAllocated,
			 p->SystemMemory.BytesAllocated);
	assert_int_equal(p->SystemMemory.SectionBytesAllocated, 0);
	/* another process has nothing */
	vidmm_d3dkmt_enter(f.w.other);
	assert_int_equal(own(&f, 0)->BytesCommitted, 0);
	assert_int_equal(own(&f, 0)->VideoMemory.AllocsCommitted, 0);
	assert_int_equal(ask(&f, D3DKMT_QUERYSTATISTICS_PROCESS, 0), STATUS_SUCCESS);
	assert_int_equal(f.args.QueryResult.ProcessInformation.SystemMemory.BytesAllocated, 0);
	vidmm_d3dkmt_enter(f.w.process);
	kmt_stop(&f.w);
}

static void qst_06_nodes_count_packets_and_time(void **state)
{
	struct fixture f;
	const uint64_t unit_ns = 100;

	start(&f, state);
	const uint32_t before =
		node(&f, 1)
			->GlobalInformation.PacketStatistics.DmaPacket[D3DKMT_SystemPagingBuffer]
			.PacketSubmited;
	work(&f);
	const uint64_t paging = before + f.paging.count;
	const D3DKMT_QUERYSTATISTICS_NODE_INFORMATION *n = node(&f, 0);
	const D3DKMT_QUERYSTATISTICS_DMA_PACKET_TYPE_INFORMATION *dma =
		n->GlobalInformation.PacketStatistics.DmaPacket;
	const D3DKMT_QUERYSTATISTICS_QUEUE_PACKET_TYPE_INFORMATION *queue =
		n->GlobalInformation.PacketStatistics.QueuePacket;
	assert_int_equal(dma[D3DKMT_ClientRenderBuffer].PacketSubmited, f.renders.count);
	assert_int_equal(dma[D3DKMT_ClientRenderBuffer].PacketCompleted, f.renders.count);
	assert_int_equal(dma[D3DKMT_ClientRenderBuffer].PacketFaulted, 0);
	assert_int_equal(queue[D3DKMT_RenderCommandBuffer].PacketSubmited, ALLOCATIONS);
	assert_int_equal(queue[D3DKMT_RenderCommandBuffer].PacketSubmited,
			 client_events(&f.w.client, VIDMM_EVENT_SUBMIT));
	assert_int_equal(queue[D3DKMT_RenderCommandBuffer].PacketCompleted, ALLOCATIONS);
	assert_int_equal(queue[D3DKMT_MmIoFlipCommandBuffer].PacketSubmited, 0);
	assert_true(n->GlobalInformation.ContextSwitch >= 1);
	/* each packet stalls for 1 ms */
	const uint64_t least = ALLOCATIONS * 1000000ull / unit_ns;
	const LONGLONG running = n->GlobalInformation.RunningTime.QuadPart;
	assert_true((uint64_t)running >= least);
	const D3DKMT_QUERYSTATISTICS_PROCESS_NODE_INFORMATION *p = own_node(&f, 0);
	assert_int_equal(p->PacketStatistics.QueuePacket[D3DKMT_RenderCommandBuffer].PacketSubmited,
			 ALLOCATIONS);
	assert_true((uint64_t)p->RunningTime.QuadPart >= least);
	assert_true(p->RunningTime.QuadPart <= running);
	/* softgpu pages on node 1 */
	dma = node(&f, 1)->GlobalInformation.PacketStatistics.DmaPacket;
	assert_int_equal(dma[D3DKMT_SystemPagingBuffer].PacketSubmited, paging);
	assert_int_equal(dma[D3DKMT_SystemPagingBuffer].PacketCompleted, paging);
	assert_int_equal(dma[D3DKMT_ClientRenderBuffer].PacketSubmited, 0);
	dma = f.args.QueryResult.NodeInformation.SystemInformation.PacketStatistics.DmaPacket;
	assert_int_equal(dma[D3DKMT_SystemPagingBuffer].PacketSubmited, paging);
	assert_int_equal(own_node(&f, 1)
				 ->PacketStatistics.DmaPacket[D3DKMT_SystemPagingBuffer]
				 .PacketSubmited,
			 0);
	static const uint32_t absent[] = {2, 64, UINT32_MAX};
	static const uint32_t types[] = {D3DKMT_QUERYSTATISTICS_NODE,
					 D3DKMT_QUERYSTATISTICS_PROCESS_NODE};
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(absent) * 2; i++) {
		assert_int_equal(ask(&f, types[i % 2], absent[i / 2]), STATUS_INVALID_PARAMETER);
		kmt_found(&f.w, "QST-06");
		untouched(&f);
	}
	kmt_stop(&f.w);
}

static void qst_06_a_process_keeps_its_counters_while_it_has_a_device(void **state)
{
	struct fixture f;
	D3DKMT_DESTROYDEVICE destroy;

	start(&f, state);
	work(&f);
	const D3DKMT_HANDLE second = kmt_device(&f.w);
	destroy.hDevice = f.w.device;
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
	assert_int_equal(own_node(&f, 0)
				 ->PacketStatistics.QueuePacket[D3DKMT_RenderCommandBuffer]
				 .PacketCompleted,
			 ALLOCATIONS);
	destroy.hDevice = second;
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
	assert_int_equal(own_node(&f, 0)
				 ->PacketStatistics.QueuePacket[D3DKMT_RenderCommandBuffer]
				 .PacketCompleted,
			 0);
	/* the node has done it nevertheless */
	assert_int_equal(node(&f, 0)
				 ->GlobalInformation.PacketStatistics
				 .QueuePacket[D3DKMT_RenderCommandBuffer]
				 .PacketCompleted,
			 ALLOCATIONS);
	kmt_stop(&f.w);
}

static void qst_07_an_adapter_without_sources_has_none_to_query(void **state)
{
	static const uint32_t types[] = {D3DKMT_QUERYSTATISTICS_VIDPNSOURCE,
					 D3DKMT_QUERYSTATISTICS_PROCESS_VIDPNSOURCE};
	struct fixture f;

	start(&f, state);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(types); i++) {
		assert_int_equal(ask(&f, types[i], 0), STATUS_INVALID_PARAMETER);
		kmt_found(&f.w, "QST-07");
		untouched(&f);
	}
	kmt_stop(&f.w);
}

static void qst_08_segment_groups_came_with_2_0(void **state)
{
	struct fixture f;

	start(&f, state);
	assert_int_equal(ask(&f, D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_GROUP, 0),
			 STATUS_NOT_SUPPORTED);
	kmt_told(&f.w, STATUS_NOT_SUPPORTED, "which has no budgets");
	untouched(&f);
	kmt_stop(&f.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(qst_01_adp_06_the_adapter_is_named_by_its_luid),
		ON_BOTH(qst_02_unknown_and_unbuilt_types_are_refused),
		ON_BOTH(qst_02_hnd_07_another_process_cannot_be_queried),
		ON_BOTH(qst_03_the_adapters_figures_are_those_of_the_event_stream),
		ON_BOTH(qst_03_renames_are_those_of_the_librarys_statistics),
		ON_BOTH(qst_04_segments_are_counted_from_0),
		ON_BOTH(qst_05_a_process_has_the_allocations_that_it_created),
		ON_BOTH(qst_06_nodes_count_packets_and_time),
		ON_BOTH(qst_06_a_process_keeps_its_counters_while_it_has_a_device),
		ON_BOTH(qst_07_an_adapter_without_sources_has_none_to_query),
		ON_BOTH(qst_08_segment_groups_came_with_2_0),
	};

	return cmocka_run_group_tests_name("kmt statistics", tests, NULL, NULL);
}
