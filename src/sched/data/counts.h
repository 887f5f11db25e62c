/* SPDX-License-Identifier: MIT */
/*
 * Counters of nodes for D3DKMTQueryStatistics (QST-06). A client's packet counts for its node and
 * for its device, a paging packet for the system. Inlined: some run for each packet. The caller
 * holds the state lock.
 */
#ifndef VMM_SCHED_COUNTS_H
#define VMM_SCHED_COUNTS_H

#include "sched/data/data.h"

/* Adds to a member of both the node's counters and those of the device that owns the packet. */
#define VMM_COUNT_LOCKED(sched, dma, member, amount)                          \
	do {                                                                  \
		const struct vmm_dma *dma_ = (dma);                           \
		uint32_t node_ = dma_->context->node;                         \
		(sched)->node[node_].clients.member += (amount);              \
		dma_->context->device->node_counts[node_].member += (amount); \
	} while (0)
/* The same for a packet, which may be one of paging. */
#define VMM_COUNT_PACKET_LOCKED(sched, packet, member, amount)                        \
	do {                                                                          \
		struct vmm_packet *packet_ = (struct vmm_packet *)(packet);           \
		if (packet_->paging)                                                  \
			(sched)->node[packet_->node].system.member += (amount);       \
		else                                                                  \
			VMM_COUNT_LOCKED(sched, vmm_dma_of(packet_), member, amount); \
	} while (0)

#endif
