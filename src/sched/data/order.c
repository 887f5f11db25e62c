/* SPDX-License-Identifier: MIT */
/*
 * Order of packets on a node: fair sharing within a priority level, priorities between levels
 * (SCH-05, SCH-06). The packets of one context keep their order. Among the contexts that have a
 * prepared packet, the one with the highest effective priority is next (level.c).
 *
 * Contexts of equal priority share the node as in start-time fair queuing:
 *   - Each context has an account of the node time that it used, on the virtual clock of its level.
 *     The context with the least account is next. It keeps the node until it is one slice ahead.
 *   - A context that was idle, or that comes from another level, starts at the present clock of the
 *     level: it gains nothing by having been idle, and loses nothing by having had the node to
 *     itself.
 *
 * Exceptions to the priority order:
 *   - Aging: a context that waited while the node did `patience` of work for higher priorities gets
 *     one packet.
 *   - Priority inheritance: a packet never overtakes a packet of another context that it depends on
 *     (vmm_order_after). The packet that it depends on then runs at its priority. The oldest packet
 *     of the node is overtaken by OVERTAKING_AT_MOST packets at most.
 *   - A portion of a split buffer runs after all prepared packets. Nothing is prepared while it
 *     runs, so no packet gets between it and the next portion (SPL-09).
 */
#include "sched/data/counts.h"
#include "sched/data/data.h"

/*
 * The least that a packet is charged. A software GPU on virtual time may report 0 for a packet;
 * the other contexts would then never get a turn.
 */
#define COST_LEAST_NS       1000u
/* A packet that was preempted this many times may finish. */
#define PREEMPTIONS_AT_MOST 4u
/*
 * The oldest packet of a node is overtaken by this many packets at most, even if its context has
 * an idle priority: ids are compared modulo 2^32 (SUB-01).
 */
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

	if (!o->slice_us || o->patience_us < o->slice_us)
		return vmm_refuse_rule(
			adapter->observe, VMM_INVALID_PARAMETER, "SCH-06", 0, 0,
			"scheduling with a slice of %u us and a patience of %u us: both must be "
			"at least 1, and the patience at least the slice",
			o->slice_us, o->patience_us);
	adapter->sched->slice_ns = (uint64_t)o->slice_us * NS_PER_US;
	adapter->sched->patience_ns = (uint64_t)o->patience_us * NS_PER_US;
	return VMM_OK;
}

/* ---- packets that must not be overtaken ---- */

/*
 * Returns the number of the newest packet that the buffer must not overtake; 0: none. A packet
 * follows every packet that writes an allocation that it references, and every packet that
 * references an allocation that it writes. Clients that share an allocation rely on this order:
 * nodes were first come, first served. The number may cover more than is needed: it means every
 * packet up to that number. Called only while packets of other contexts are incomplete on the
 * node.
 */
VMM_COLD static uint64_t order_after(struct vmm_sched *sched, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	const struct vmm_adapter *adapter = sched->adapter;
	uint32_t t = dma->context->node;
	const struct vmm_node *node = &sched->node[t];
	uint64_t newest = atomic_load_explicit(&adapter->timeline[t].queued, memory_order_relaxed),
		 after = 0;

	vmm_assert_held(&sched->adapter->submit_lock);
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
		    node->owner[used % VMM_TIMELINE_AHEAD] == dma->context->hazard)
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
	uint64_t others = node->newest_owner == dma->context->hazard
				  ? node->newest_of_others
				  : atomic_load_explicit(&sched->adapter->timeline[t].queued,
							 memory_order_relaxed);

	vmm_assert_held(&sched->adapter->submit_lock);
	if (vmm_timeline_passed(sched->adapter, t, others))
		return 0;
	uint64_t after = order_after(sched, dma);
	return vmm_unlikely(dma->flip != NULL)
		       ? vmm_max_u64(after, node->newest_flip[dma->flip->source_id])
		       : after;
}

void vmm_order_queued(struct vmm_sched *sched, const struct vmm_dma *dma, uint64_t sequence)
{
	struct vmm_node *node = &sched->node[dma->context->node];

	vmm_assert_held(&sched->adapter->state_lock);
	VMM_COUNT_LOCKED(sched, dma, queued[dma->kind->in_turn], 1);
	node->owner[sequence % VMM_TIMELINE_AHEAD] = dma->context->hazard;
	/* PRS-04: flips of a source run in the order in which they were queued */
	if (vmm_unlikely(dma->flip != NULL))
		node->newest_flip[dma->flip->source_id] = sequence;
	if (vmm_likely(node->newest_owner == dma->context->hazard))
		return;
	node->newest_owner = dma->context->hazard;
	node->newest_of_others = sequence - 1;
}

/* ---- the contexts of a node ---- */

static void update_level(struct vmm_node *node, struct vmm_context *context)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_turn *turn = &context->turn;
	uint32_t level = vmm_priority_level(context);

	vmm_assert_held(&context->device->adapter->state_lock);
	if (vmm_likely(level == turn->level))
		return;
	turn->level = level;
	turn->used_ns = node->clock_ns[level];
}

static void join_node(struct vmm_node *node, struct vmm_context *context)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_turn *turn = &context->turn;

	vmm_assert_held(&context->device->adapter->state_lock);
	if (!vmm_list_empty(&turn->ready))
		return;
	update_level(node, context);
	turn->used_ns = vmm_max_u64(turn->used_ns, node->clock_ns[turn->level]);
	turn->waits_since_ns = node->busy_ns;
	vmm_list_push_back(&node->contexts, &turn->link);
}

void vmm_order_ready_locked(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_node *node = &sched->node[packet->node];

	vmm_assert_held(&sched->adapter->state_lock);
	if (packet->paging) {
		vmm_list_push_back(&node->paging, &packet->link);
		return;
	}
	struct vmm_dma *dma = vmm_dma_of(packet);

	join_node(node, dma->context);
	vmm_list_push_back(&dma->context->turn.ready, &packet->link);
	if (vmm_unlikely(packet->cancelled))
		node->cancelled++;
	else
		dma->work.prepared = !packet->portion;
}

/* Puts back a packet that the miniport gave up. The caller passes the packets newest first. */
void vmm_order_requeue_locked(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_node *node = &sched->node[packet->node];

	vmm_assert_held(&sched->adapter->state_lock);
	VMM_COUNT_PACKET_LOCKED(sched, packet, preempted, 1);
	if (packet->paging) {
		vmm_list_insert_after(&node->paging, &packet->link);
		return;
	}
	struct vmm_dma *dma = vmm_dma_of(packet);

	join_node(node, dma->context);
	vmm_list_insert_after(&dma->context->turn.ready, &packet->link);
	dma->context->turn.running--;
	dma->work.submitted = false;
}

void vmm_order_take_locked(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_node *node = &sched->node[packet->node];

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_list_remove(&packet->link);
	if (packet->paging) {
		node->system.submitted++;
		return;
	}
	struct vmm_dma *dma = vmm_dma_of(packet);
	struct vmm_turn *turn = &dma->context->turn;

	if (vmm_list_empty(&turn->ready))
		vmm_list_remove(&turn->link);
	if (vmm_unlikely(packet->cancelled))
		return;
	VMM_COUNT_LOCKED(sched, dma, submitted, 1);
	if (node->holder != dma->context->hazard)
		VMM_COUNT_LOCKED(sched, dma, switches, 1);
	turn->running++;
	turn->waits_since_ns = node->busy_ns;
	node->holder = dma->context->hazard;
	node->clock_ns[turn->level] = vmm_max_u64(node->clock_ns[turn->level], turn->used_ns);
	dma->work.submitted = !packet->portion;
	if (!packet->portion)
		dma->context->steps.submitted = packet->sequence;
}

void vmm_order_charge_locked(struct vmm_sched *sched, const struct vmm_packet *packet, uint64_t ns)
{
	struct vmm_node *node = &sched->node[packet->node];

	vmm_assert_held(&sched->adapter->state_lock);
	node->busy_ns += ns;
	VMM_COUNT_PACKET_LOCKED(sched, packet, running_ns, ns);
	if (packet->paging)
		return;
	struct vmm_turn *turn = &vmm_dma_of((struct vmm_packet *)packet)->context->turn;

	turn->cost_ns = vmm_max_u64(ns, COST_LEAST_NS);
	turn->used_ns += turn->cost_ns;
}

/* ---- the choice ---- */

struct choice {
	struct vmm_context *best, *oldest, *portion, *starving;
	uint32_t level; /* the level at which `best` runs: its own, or one that it inherits */
	uint32_t starving_level;
	uint64_t starving_ns;
};

static bool can_run(const struct vmm_sched *sched, const struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->state_lock);
	/* TDR-12: a packet of a lost device is about to be canceled. */
	if (vmm_unlikely(sched->losing_nodes) &&
	    vmm_device_lost(vmm_dma_of((struct vmm_packet *)packet)->context->device))
		return false;
	/*
	 * No render packet runs while a synchronous paging packet is incomplete (PAG-21, SUB-30).
	 */
	if (vmm_unlikely(!vmm_timeline_done(adapter, adapter->paging_timeline,
					    sched->newest_synchronous)))
		return false;
	/*
	 * SUB-03: the paging work ran on another node, so its completion counts, not its
	 * submission.
	 */
	return !packet->cancelled &&
	       vmm_timeline_done(adapter, adapter->paging_timeline, packet->paging_needed);
}

/*
 * The context with the least value is next. The slice is added for all contexts but the holder,
 * so the holder goes on until it is one slice ahead.
 */
static uint64_t virtual_time(const struct vmm_sched *sched, const struct vmm_node *node,
			     const struct vmm_context *context) VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_turn *turn = &context->turn;

	vmm_assert_held(&sched->adapter->state_lock);
	return turn->used_ns + turn->running * turn->cost_ns +
	       (node->holder == context->hazard ? 0 : sched->slice_ns);
}

static bool is_before(const struct vmm_sched *sched, const struct vmm_node *node,
		      const struct vmm_context *a, const struct vmm_context *b)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint64_t of_a = virtual_time(sched, node, a), of_b = virtual_time(sched, node, b);

	vmm_assert_held(&sched->adapter->state_lock);
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

/*
 * Returns the context that a turn of CONTEXT would let run: CONTEXT itself, or the oldest context
 * if the packet must not overtake it (priority inheritance). Returns NULL if that packet cannot
 * run yet.
 */
static struct vmm_context *runner_for(const struct vmm_sched *sched, const struct choice *c,
				      struct vmm_context *context)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_packet *packet = vmm_order_first(context);

	vmm_assert_held(&sched->adapter->state_lock);
	if (!can_run(sched, packet))
		return NULL;
	if (context == c->oldest ||
	    vmm_dma_of(packet)->after < vmm_order_first(c->oldest)->sequence)
		return context;
	return can_run(sched, vmm_order_first(c->oldest)) ? c->oldest : NULL;
}

static void consider(struct vmm_sched *sched, struct vmm_node *node, struct choice *c,
		     struct vmm_context *context) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	update_level(node, context);
	struct vmm_context *runner = runner_for(sched, c, context);
	uint32_t level = context->turn.level;
	uint64_t waits = node->busy_ns - context->turn.waits_since_ns;

	if (!runner)
		return;
	if (vmm_order_first(runner)->portion) {
		c->portion = runner;
		return;
	}
	if (waits >= sched->patience_ns && waits > c->starving_ns &&
	    (!vmm_level_may_starve(level) || atomic_load(&sched->blocked))) {
		c->starving = runner;
		c->starving_ns = waits;
		c->starving_level = level;
	}
	if (c->best &&
	    (level < c->level || (level == c->level && !is_before(sched, node, runner, c->best))))
		return;
	c->best = runner;
	c->level = level;
}

/*
 * SCH-03: within a process, the turn passes to the context with the higher in-process priority.
 * The two contexts swap their accounts, so other processes lose nothing.
 */
static struct vmm_context *within_process(const struct vmm_sched *sched,
					  const struct vmm_node *node, const struct choice *c)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_context *chosen = c->best;
	const struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
	if (node->busy_ns - chosen->turn.waits_since_ns >= sched->patience_ns)
		return chosen;
	vmm_list_for_each (link, &node->contexts) {
		struct vmm_context *other = context_of(link);

		if (other->device->process != chosen->device->process ||
		    other->turn.level != chosen->turn.level ||
		    atomic_load(&other->turn.in_process) <= atomic_load(&chosen->turn.in_process) ||
		    runner_for(sched, c, other) != other || vmm_order_first(other)->portion)
			continue;
		uint64_t used_ns = other->turn.used_ns;

		other->turn.used_ns = chosen->turn.used_ns;
		chosen->turn.used_ns = used_ns;
		chosen = other;
	}
	return chosen;
}

/* SPL-09: returns the context whose last portion can run; no other packet may run before it. */
static struct vmm_context *last_portion(const struct vmm_sched *sched, const struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
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
			  const struct vmm_context *best) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	return oldest != best && can_run(sched, vmm_order_first(oldest)) &&
	       !vmm_order_first(oldest)->portion &&
	       vmm_order_first(best)->sequence >
		       vmm_order_first(oldest)->sequence + OVERTAKING_AT_MOST;
}

/* Picks the context to run among several that have prepared packets. */
static struct vmm_context *choose(struct vmm_sched *sched, struct vmm_node *node, struct choice *c)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
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
	/* the priority is inherited: the in-process order does not apply */
	return c->best == c->oldest && c->best->turn.level < c->level
		       ? c->best
		       : within_process(sched, node, c);
}

/* SCH-05: returns whether the running packet has a lower priority and may be preempted. */
static bool is_urgent(const struct vmm_sched *sched, const struct vmm_node *node, uint32_t level)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
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

/* Returns the packet to run next; `level` gets the level at which it runs. */
VMM_COLD static struct vmm_packet *next_of_several(struct vmm_sched *sched, struct vmm_node *node,
						   uint32_t *level)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct choice c = {0};
	const struct vmm_context *context = choose(sched, node, &c);

	vmm_assert_held(&sched->adapter->state_lock);
	*level = c.level;
	return context ? vmm_order_first(context) : NULL;
}

VMM_COLD static bool should_preempt(struct vmm_sched *sched, struct vmm_node *node,
				    struct vmm_packet *packet, uint32_t level)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	update_level(node, vmm_dma_of(packet)->context);
	return is_urgent(sched, node, level ? level : vmm_dma_of(packet)->context->turn.level);
}

static struct vmm_packet *next_of_contexts(struct vmm_sched *sched, struct vmm_node *node,
					   uint32_t *level) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *link = node->contexts.next;

	vmm_assert_held(&sched->adapter->state_lock);
	if (link == &node->contexts)
		return NULL;
	if (vmm_unlikely(link != node->contexts.prev))
		return next_of_several(sched, node, level);
	struct vmm_packet *packet = vmm_order_first(context_of(link));

	return can_run(sched, packet) ? packet : NULL;
}

/* The node was already given a newer fence id than the packet's. */
static bool is_stale(const struct vmm_node *node, const struct vmm_packet *packet)
{
	return packet && vmm_unlikely(vmm_fence_reached(node->newest, packet->fence));
}

/*
 * Returns the paging packet that must run before PACKET; NULL: PACKET goes first. Paging that the
 * packet may need has an older fence id than the packet. Paging with a newer id is not needed by
 * it. (SUB-03, SCH-09)
 */
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
 * PAG-21 on a link: one number of the paging timeline may have a packet for each adapter. Once
 * one packet of a synchronous number is with the hardware, no render packet is submitted until
 * the number is complete. So the number begins only when all its packets are next on their nodes
 * and all older paging is complete.
 */
VMM_COLD static bool may_begin_alone(struct vmm_sched *sched, const struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_adapter *adapter = sched->adapter;
	uint32_t parts = sched->paging_parts[packet->sequence % VMM_PAGING_PACKETS], level = 0;

	vmm_assert_held(&sched->adapter->state_lock);
	if (adapter->physical_adapters == 1 || sched->newest_synchronous == packet->sequence)
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
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_unlikely(packet->synchronous) && !may_begin_alone(sched, packet))
		return false;
	/* SUB-03 between the adapters of a link. */
	return vmm_timeline_passed(sched->adapter, packet->timeline, packet->paging_needed);
}

struct vmm_packet *vmm_order_next_locked(struct vmm_sched *sched, struct vmm_node *node,
					 bool *urgent, struct vmm_packet **stale)
{
	uint32_t level = 0;
	struct vmm_packet *packet = next_of_contexts(sched, node, &level),
			  *paging = paging_before(node, packet);

	vmm_assert_held(&sched->adapter->state_lock);
	if (is_stale(node, packet))
		*stale = packet;
	if (paging)
		return may_page(sched, paging) ? paging : NULL;
	if (packet && vmm_unlikely(sched->caps->preemption_aware))
		*urgent = should_preempt(sched, node, packet, level);
	return packet;
}

void vmm_queue_ready(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(adapter);
	vmm_order_ready_locked(sched, packet);
	VMM_COUNT_PACKETS_LOCKED(sched->ready_count, 1u);
	vmm_state_unlock(adapter);
}
