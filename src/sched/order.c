/* SPDX-License-Identifier: MIT */
/*
 * Whose turn it is on a node (SCH-05, SCH-06). The packets of a context keep their order; among contexts that have a prepared
 * packet the highest effective priority is next (priority.c), and those of equal priority share the node:
 *
 *   - each has used so much of the node's time, as the clock of its level counts it; who has used least is next, and goes on
 *     until he is a slice ahead. Who comes back, or comes from another level, begins where the clock stands: neither idle time
 *     nor time alone on the node is to anybody's credit or debt.
 *   - who has been waiting for a context of higher priority while the node did `patience` of work gets one packet.
 *   - a packet never overtakes another context's that it must not (vmm_order_after): then that one inherits its priority. The
 *     oldest of the node is overtaken by a million at most.
 *   - a portion of a split buffer goes last: with it preparation is held, so nothing comes between it and the next (SPL-09).
 */
#include "sched/sched_private.h"

/* No packet is free: a GPU in software on virtual time may think so, and the others would never get their turn. */
#define COST_LEAST_NS       1000u
/* So often a running packet is interrupted for others before it may finish. */
#define PREEMPTIONS_AT_MOST 4u
/* By so many packets one is overtaken, idle or not: ids are compared modulo 2^32 (SUB-01). */
#define OVERTAKING_AT_MOST  (1u << 20)
#define NS_PER_US           1000u

static struct vmm_context *context_of(const struct vmm_list *link)
{
	return vmm_container_of(link, struct vmm_context, turn.link);
}

void vmm_turn_init(struct vmm_context *context)
{
	vmm_list_init(&context->turn.ready);
	vmm_list_init(&context->turn.link);
}

vmm_status vmm_sched_configure(struct vmm_adapter *adapter,
			       const struct vidmm_scheduling_options *options)
{
	static const struct vidmm_scheduling_options defaults = VIDMM_SCHEDULING_DEFAULTS;
	const struct vidmm_scheduling_options *o = options ? options : &defaults;

	if (!o->slice_us || o->patience_us < o->slice_us) {
		vmm_finding(
			adapter->observe, "SCH-06", 0, 0,
			"scheduling with a slice of %u us and a patience of %u us: neither may be 0, "
			"nor the patience less than the slice",
			o->slice_us, o->patience_us);
		return VMM_INVALID_PARAMETER;
	}
	adapter->sched->slice_ns = (uint64_t)o->slice_us * NS_PER_US;
	adapter->sched->patience_ns = (uint64_t)o->patience_us * NS_PER_US;
	return VMM_OK;
}

/* ---- what must not be overtaken ---- */

/*
 * Work of other contexts is under way. A packet follows whatever of it writes what it names, and whatever names what it writes:
 * nobody who shares an allocation has had to order that himself while nodes were first come, first served. The number says
 * more than is needed: everything up to there.
 */
VMM_COLD static uint64_t order_after(struct vmm_sched *sched, const struct vmm_dma *dma)
{
	const struct vmm_adapter *adapter = sched->adapter;
	uint32_t t = dma->context->node;
	const struct vmm_node *node = &sched->node[t];
	uint64_t newest = atomic_load_explicit(&adapter->timeline[t].queued, memory_order_relaxed),
		 after = 0;

	for (uint32_t i = 0; i < dma->list_count; i++) {
		struct vmm_instance *instance = dma->instances[i];
		uint8_t bit = (uint8_t)(1u << t);

		if (!instance)
			continue;
		uint64_t used = atomic_load_explicit(&instance->queued[t], memory_order_relaxed),
			 written =
				 atomic_load_explicit(&instance->written[t], memory_order_relaxed);
		if (vmm_timeline_passed(adapter, t, used)) {
			instance->shared_use &= (uint8_t)~bit;
			continue;
		}
		if (newest - used < VMM_TIMELINE_AHEAD && !(instance->shared_use & bit) &&
		    node->owner[used % VMM_TIMELINE_AHEAD] == dma->context->live)
			continue;
		if (dma->uses[i] & VMM_USES_WRITE) {
			instance->shared_use &= (uint8_t)~bit;
			written = used;
		} else {
			instance->shared_use |= bit;
		}
		after = after > written ? after : written;
	}
	return after;
}

uint64_t vmm_order_after(struct vmm_sched *sched, const struct vmm_dma *dma)
{
	uint32_t t = dma->context->node;
	const struct vmm_node *node = &sched->node[t];
	uint64_t others = node->newest_owner == dma->context->live
				  ? node->newest_of_others
				  : atomic_load_explicit(&sched->adapter->timeline[t].queued,
							 memory_order_relaxed);

	if (vmm_timeline_passed(sched->adapter, t, others))
		return 0;
	uint64_t after = order_after(sched, dma);
	return vmm_unlikely(dma->flip != NULL)
		       ? vmm_max_u64(after, node->flipped[dma->flip->source_id])
		       : after;
}

void vmm_order_queued(struct vmm_sched *sched, const struct vmm_dma *dma, uint64_t sequence)
{
	struct vmm_node *node = &sched->node[dma->context->node];

	node->owner[sequence % VMM_TIMELINE_AHEAD] = dma->context->live;
	if (vmm_unlikely(dma->flip != NULL)) /* PRS-04: in the order in which they were queued */
		node->flipped[dma->flip->source_id] = sequence;
	if (vmm_likely(node->newest_owner == dma->context->live))
		return;
	node->newest_owner = dma->context->live;
	node->newest_of_others = sequence - 1;
}

/* ---- the contexts of a node ---- */

static void look_at_level(struct vmm_node *node, struct vmm_context *context)
{
	struct vmm_turn *turn = &context->turn;
	uint32_t level = vmm_priority_level(context);

	if (vmm_likely(level == turn->level))
		return;
	turn->level = level;
	turn->used_ns = node->clock_ns[level];
}

static void join(struct vmm_node *node, struct vmm_context *context)
{
	struct vmm_turn *turn = &context->turn;

	if (!vmm_list_empty(&turn->ready))
		return;
	look_at_level(node, context);
	turn->used_ns = vmm_max_u64(turn->used_ns, node->clock_ns[turn->level]);
	turn->waits_since_ns = node->busy_ns;
	vmm_list_push_back(&node->contexts, &turn->link);
}

void vmm_order_ready_locked(struct vmm_node *node, struct vmm_packet *packet)
{
	if (packet->paging) {
		vmm_list_push_back(&node->paging, &packet->link);
		return;
	}
	struct vmm_dma *dma = vmm_dma_of(packet);

	join(node, dma->context);
	vmm_list_push_back(&dma->context->turn.ready, &packet->link);
	if (vmm_unlikely(packet->cancelled))
		node->cancelled++;
	else
		dma->work.prepared = !packet->portion;
}

/* From the miniport, newest first. */
void vmm_order_again_locked(struct vmm_node *node, struct vmm_packet *packet)
{
	if (packet->paging) {
		vmm_list_insert_after(&node->paging, &packet->link);
		return;
	}
	struct vmm_dma *dma = vmm_dma_of(packet);

	join(node, dma->context);
	vmm_list_insert_after(&dma->context->turn.ready, &packet->link);
	dma->context->turn.running--;
	dma->work.submitted = false;
}

void vmm_order_take_locked(struct vmm_node *node, struct vmm_packet *packet)
{
	vmm_list_remove(&packet->link);
	if (packet->paging)
		return;
	struct vmm_dma *dma = vmm_dma_of(packet);
	struct vmm_turn *turn = &dma->context->turn;

	if (vmm_list_empty(&turn->ready)) {
		vmm_list_remove(&turn->link);
		vmm_list_init(&turn->link);
	}
	if (vmm_unlikely(packet->cancelled))
		return;
	turn->running++;
	turn->waits_since_ns = node->busy_ns;
	node->holder = dma->context->live;
	node->clock_ns[turn->level] = vmm_max_u64(node->clock_ns[turn->level], turn->used_ns);
	dma->work.submitted = !packet->portion;
	if (!packet->portion)
		dma->context->steps.submitted = packet->sequence;
}

void vmm_order_charge_locked(struct vmm_node *node, const struct vmm_packet *packet, uint64_t ns)
{
	node->busy_ns += ns;
	if (packet->paging)
		return;
	struct vmm_turn *turn = &vmm_dma_of((struct vmm_packet *)packet)->context->turn;

	turn->cost_ns = vmm_max_u64(ns, COST_LEAST_NS);
	turn->used_ns += turn->cost_ns;
}

/* ---- the choice ---- */

struct choice {
	struct vmm_context *best, *oldest, *portion, *starving;
	uint32_t level; /* at which `best` runs: his, or that of one who waits for him */
	uint32_t starving_level;
	uint64_t starving_ns;
};

static bool can_run(const struct vmm_sched *sched, const struct vmm_packet *packet)
{
	const struct vmm_adapter *adapter = sched->adapter;

	/* TDR-12: it is about to be cancelled. */
	if (vmm_unlikely(sched->losing) &&
	    vmm_device_lost(vmm_dma_of((struct vmm_packet *)packet)->context->device))
		return false;
	/* PAG-21, SUB-30 */
	if (vmm_unlikely(!vmm_timeline_done(adapter, adapter->paging_timeline, sched->alone)))
		return false;
	/* SUB-03: paging work ran on another node; its completion, not its submission, is what counts. */
	return !packet->cancelled &&
	       vmm_timeline_done(adapter, adapter->paging_timeline, packet->paging_needed);
}

/* Who has the least is next; the holder of the slice goes on until he has had that much more. */
static uint64_t account(const struct vmm_sched *sched, const struct vmm_node *node,
			const struct vmm_context *context)
{
	const struct vmm_turn *turn = &context->turn;

	return turn->used_ns + turn->running * turn->cost_ns +
	       (node->holder == context->live ? 0 : sched->slice_ns);
}

static bool is_before(const struct vmm_sched *sched, const struct vmm_node *node,
		      const struct vmm_context *a, const struct vmm_context *b)
{
	uint64_t of_a = account(sched, node, a), of_b = account(sched, node, b);

	return of_a != of_b ? of_a < of_b
			    : vmm_order_first(a)->sequence < vmm_order_first(b)->sequence;
}

static void find_oldest(const struct vmm_node *node, struct choice *c)
{
	const struct vmm_list *link;

	vmm_list_for_each (link, &node->contexts) {
		struct vmm_context *context = context_of(link);

		if (!c->oldest ||
		    vmm_order_first(context)->sequence < vmm_order_first(c->oldest)->sequence)
			c->oldest = context;
	}
}

/* Whom the context's turn would be: his, or that of the oldest if he must not overtake that one. NULL: nobody's yet. */
static struct vmm_context *whose(const struct vmm_sched *sched, const struct choice *c,
				 struct vmm_context *context)
{
	struct vmm_packet *packet = vmm_order_first(context);

	if (!can_run(sched, packet))
		return NULL;
	if (context == c->oldest ||
	    vmm_dma_of(packet)->after < vmm_order_first(c->oldest)->sequence)
		return context;
	return can_run(sched, vmm_order_first(c->oldest)) ? c->oldest : NULL;
}

static void consider(struct vmm_sched *sched, struct vmm_node *node, struct choice *c,
		     struct vmm_context *context)
{
	look_at_level(node, context);
	struct vmm_context *who = whose(sched, c, context);
	uint32_t level = context->turn.level;
	uint64_t waits = node->busy_ns - context->turn.waits_since_ns;

	if (!who)
		return;
	if (vmm_order_first(who)->portion) {
		c->portion = who;
		return;
	}
	if (waits >= sched->patience_ns && waits > c->starving_ns &&
	    (!vmm_level_may_starve(level) || atomic_load(&sched->blocked))) {
		c->starving = who;
		c->starving_ns = waits;
		c->starving_level = level;
	}
	if (c->best &&
	    (level < c->level || (level == c->level && !is_before(sched, node, who, c->best))))
		return;
	c->best = who;
	c->level = level;
}

/* SCH-03: the process' turn is for the one it prefers. They change places in the account: nobody else is the loser. */
static struct vmm_context *within_process(const struct vmm_sched *sched,
					  const struct vmm_node *node, const struct choice *c)
{
	struct vmm_context *chosen = c->best;
	const struct vmm_list *link;

	if (node->busy_ns - chosen->turn.waits_since_ns >= sched->patience_ns)
		return chosen;
	vmm_list_for_each (link, &node->contexts) {
		struct vmm_context *other = context_of(link);

		if (other->device->process != chosen->device->process ||
		    other->turn.level != chosen->turn.level ||
		    atomic_load(&other->turn.in_process) <= atomic_load(&chosen->turn.in_process) ||
		    whose(sched, c, other) != other || vmm_order_first(other)->portion)
			continue;
		uint64_t used_ns = other->turn.used_ns;

		other->turn.used_ns = chosen->turn.used_ns;
		chosen->turn.used_ns = used_ns;
		chosen = other;
	}
	return chosen;
}

/* SPL-09: the last portion is due, and nothing may come before it. */
static struct vmm_context *last_portion(const struct vmm_sched *sched, const struct vmm_node *node)
{
	const struct vmm_list *link;

	if (sched->caps->preemption_aware) /* SPL-10 */
		return NULL;
	vmm_list_for_each (link, &node->contexts) {
		struct vmm_packet *packet = vmm_order_first(context_of(link));

		if (!packet->portion && vmm_dma_of(packet)->split && can_run(sched, packet))
			return context_of(link);
	}
	return NULL;
}

static bool is_far_behind(const struct vmm_sched *sched, const struct vmm_context *oldest,
			  const struct vmm_context *best)
{
	return oldest != best && can_run(sched, vmm_order_first(oldest)) &&
	       !vmm_order_first(oldest)->portion &&
	       vmm_order_first(best)->sequence >
		       vmm_order_first(oldest)->sequence + OVERTAKING_AT_MOST;
}

/* Of several. */
static struct vmm_context *choose(struct vmm_sched *sched, struct vmm_node *node, struct choice *c)
{
	struct vmm_list *link;

	find_oldest(node, c);
	vmm_list_for_each (link, &node->contexts)
		consider(sched, node, c, context_of(link));
	struct vmm_context *last = last_portion(sched, node);
	if (vmm_unlikely(last))
		return last;
	if (!c->best)
		return c->portion;
	if (c->starving && c->starving_level < c->level && !vmm_level_never_yields(c->level)) {
		vmm_dma_of(vmm_order_first(c->starving))->shielded = true;
		c->level = c->starving_level;
		return c->starving;
	}
	if (vmm_unlikely(is_far_behind(sched, c->oldest, c->best)))
		return c->oldest;
	return c->best == c->oldest && c->best->turn.level < c->level
		       ? c->best /* of whom it inherits, it does not take the turn */
		       : within_process(sched, node, c);
}

/* SCH-05: is what the node is at of a lower priority? */
static bool is_urgent(const struct vmm_sched *sched, const struct vmm_node *node, uint32_t level)
{
	if (!sched->caps->preemption_aware || vmm_list_empty(&node->hardware))
		return false;
	struct vmm_packet *running = vmm_container_of(node->hardware.next, struct vmm_packet, link);
	if (running->paging)
		return false;
	const struct vmm_dma *dma = vmm_dma_of(running);
	bool shielded = dma->shielded || dma->preempted >= PREEMPTIONS_AT_MOST;

	return vmm_priority_level(dma->context) < level &&
	       (!shielded || vmm_level_never_yields(level));
}

/* The packet of the context whose turn it is; `level`: at which it runs. */
VMM_COLD static struct vmm_packet *next_of_several(struct vmm_sched *sched, struct vmm_node *node,
						   uint32_t *level)
{
	struct choice c = {0};
	const struct vmm_context *context = choose(sched, node, &c);

	*level = c.level;
	return context ? vmm_order_first(context) : NULL;
}

VMM_COLD static bool preempts(struct vmm_sched *sched, struct vmm_node *node,
			      struct vmm_packet *packet, uint32_t level)
{
	look_at_level(node, vmm_dma_of(packet)->context);
	return is_urgent(sched, node, level ? level : vmm_dma_of(packet)->context->turn.level);
}

static struct vmm_packet *next_of_contexts(struct vmm_sched *sched, struct vmm_node *node,
					   uint32_t *level)
{
	struct vmm_list *link = node->contexts.next;

	if (link == &node->contexts)
		return NULL;
	if (vmm_unlikely(link != node->contexts.prev))
		return next_of_several(sched, node, level);
	struct vmm_packet *packet = vmm_order_first(context_of(link));

	return can_run(sched, packet) ? packet : NULL;
}

/* Its id is one that the node is beyond. */
static bool is_stale(const struct vmm_node *node, const struct vmm_packet *packet)
{
	return packet && vmm_unlikely(vmm_fence_reached(node->newest, packet->fence));
}

/* SUB-03, SCH-09: what the packet may need is older than it, and it is older than what it does not need. NULL: it goes first. */
static struct vmm_packet *paging_before(const struct vmm_node *node,
					const struct vmm_packet *packet)
{
	if (vmm_list_empty(&node->paging))
		return NULL;
	struct vmm_packet *paging = vmm_container_of(node->paging.next, struct vmm_packet, link);

	return !packet || is_stale(node, packet) || vmm_fence_reached(packet->fence, paging->fence)
		       ? paging
		       : NULL;
}

/*
 * PAG-21 on a link: as soon as one packet of a synchronous number is with the hardware no render packet follows it there until
 * the number is complete. So it begins when all its packets are next on their nodes, and what was paged before is complete.
 */
VMM_COLD static bool may_begin_alone(struct vmm_sched *sched, const struct vmm_packet *packet)
{
	const struct vmm_adapter *adapter = sched->adapter;
	uint32_t parts = sched->paging_parts[packet->sequence % VMM_PAGING_PACKETS], level = 0;

	if (adapter->physical_adapters == 1 || sched->alone == packet->sequence)
		return true;
	if (!vmm_timeline_passed(adapter, packet->timeline, packet->sequence - 1))
		return false;
	for (uint32_t i = 0; i < adapter->physical_adapters; i++) {
		struct vmm_node *node = &sched->node[vmm_paging_node_of(adapter, i)];
		const struct vmm_packet *paging =
			paging_before(node, next_of_contexts(sched, node, &level));

		parts -= paging && paging->sequence == packet->sequence;
	}
	return !parts;
}

static bool may_page(struct vmm_sched *sched, const struct vmm_packet *packet)
{
	if (vmm_unlikely(packet->synchronous) && !may_begin_alone(sched, packet))
		return false;
	/* SUB-03 among the adapters of a link. */
	return vmm_timeline_passed(sched->adapter, packet->timeline, packet->paging_needed);
}

struct vmm_packet *vmm_order_next_locked(struct vmm_sched *sched, struct vmm_node *node,
					 bool *urgent, struct vmm_packet **stale)
{
	uint32_t level = 0;
	struct vmm_packet *packet = next_of_contexts(sched, node, &level),
			  *paging = paging_before(node, packet);

	if (is_stale(node, packet))
		*stale = packet;
	if (paging)
		return may_page(sched, paging) ? paging : NULL;
	if (packet && vmm_unlikely(sched->caps->preemption_aware))
		*urgent = preempts(sched, node, packet, level);
	return packet;
}
