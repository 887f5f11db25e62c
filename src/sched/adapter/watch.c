/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: one thread per adapter that finds nodes that do not make progress. Its timer for a
 * node starts when a packet becomes the node's first one with the GPU.
 *
 * 1. After TdrDelay / 2 (inferred) the miniport is asked for its current fence, because an
 *    interrupt may have been lost (SUB-14). A preemption-aware miniport is also asked to preempt
 *    the node (PRE-10).
 * 2. TdrDelay later the node has timed out, if the request has not been answered or the packet is
 *    still the first one (TDR-02).
 *
 * A test may let a node time out at once (vmm_watch_expire).
 *
 * Any completion in between restarts the timer. Submissions wake the watchdog only if it found the
 * GPU idle when it last looked; otherwise it wakes by its timer.
 */
#include "sched/adapter/adapter.h"

#define NS_PER_MS 1000000u

enum step { STEP_NONE, STEP_QUERY, STEP_TIMEOUT };

static uint64_t delay_ns(const struct vmm_sched *sched)
{
	return (uint64_t)sched->tdr.delay_ms * NS_PER_MS;
}

/*
 * Returns the step that is due on the node. With STEP_NONE, when_ns gets the time of the next one.
 * State lock held. (TDR-02)
 */
static enum step next_step(const struct vmm_sched *sched, const struct vmm_node *node, uint64_t now,
			   uint64_t *when_ns) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	*when_ns = VMM_OS_FOREVER;
	if (node->engine.failed || node->expired)
		return STEP_TIMEOUT;
	/* The engine's reset, by a holder of the paging lock. */
	if (node->engine.wanted || node->engine.running) {
		*when_ns = node->engine.since_ns + (uint64_t)sched->tdr.ddi_delay_ms * NS_PER_MS;
		return now < *when_ns ? STEP_NONE : STEP_TIMEOUT;
	}
	/* PRE-10: timed from the preemption request, until its answer */
	if (node->preempt.fence || node->preempt.wanted) {
		*when_ns = node->preempt.since_ns + delay_ns(sched);
		return now < *when_ns ? STEP_NONE : STEP_TIMEOUT;
	}
	if (vmm_list_empty(&node->hardware))
		return STEP_NONE;
	*when_ns = node->queried_ns ? node->queried_ns + delay_ns(sched)
				    : node->since_ns + delay_ns(sched) / 2;
	if (now < *when_ns)
		return STEP_NONE;
	return node->queried_ns ? STEP_TIMEOUT : STEP_QUERY;
}

static void describe(const struct vmm_sched *sched, uint32_t index, uint64_t now,
		     struct vmm_timeout *timeout) VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_node *node = &sched->node[index];
	bool empty = vmm_list_empty(&node->hardware);

	vmm_assert_held(&sched->adapter->state_lock);
	if (node->engine.failed && node->engine.timeout.fault) {
		*timeout = node->engine.timeout;
		return;
	}
	*timeout = (struct vmm_timeout){
		.node = index,
		.fence = empty ? node->preempt.fence
			       : vmm_container_of(node->hardware.next, struct vmm_packet, link)
					 ->fence,
		.request = node->preempt.fence,
		.running_ns = now - (empty ? node->preempt.since_ns : node->since_ns),
	};
	if (empty)
		return;
	const struct vmm_packet *packet =
		vmm_container_of(node->hardware.next, struct vmm_packet, link);
	if (packet->paging)
		return;
	const struct vmm_context *context = vmm_dma_of((struct vmm_packet *)packet)->context;
	timeout->process = context->device->process->id;
	timeout->context = context->handle;
}

/* SUB-14: asks for the current fence. The miniport reports new completions during the call. */
static void query(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[timeout->node];
	UINT fence;

	vmm_recovery_event(sched, VIDMM_RECOVERY_OVERDUE, timeout);
	(void)!NT_SUCCESS(vmm_port_query_current_fence(adapter->port, timeout->node, &fence));
	vmm_state_lock(adapter);
	bool same = !vmm_fence_reached(node->last_completed, timeout->fence);
	if (same) {
		node->queried_ns = vmm_os_now_ns(adapter->os);
		vmm_preempt_want_locked(sched, node);
	}
	vmm_state_unlock(adapter);
	if (!same)
		vmm_recovery_event(sched, VIDMM_RECOVERY_MISSED, timeout);
	if (!atomic_load(&sched->chores))
		return;
	/*
	 * The preemption request is made by the holder of the paging lock: a thread that waits for
	 * the GPU with the lock held, or the present holder when it releases the lock.
	 */
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_sched_kick(adapter);
}

static void time_out(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_adapter *adapter = sched->adapter;

	if (timeout->fault) { /* TDR-19: a page fault, no timeout */
		vmm_recover(sched, timeout);
		return;
	}
	vmm_recovery_event(sched, VIDMM_RECOVERY_TIMEOUT, timeout);
	if (sched->tdr.debug_mode == 1) {
		vmm_recovery_event(sched, VIDMM_RECOVERY_IGNORED, timeout);
		vmm_state_lock(adapter);
		vmm_watch_restart_locked(sched, &sched->node[timeout->node]);
		sched->node[timeout->node].preempt.since_ns = vmm_os_now_ns(adapter->os);
		vmm_state_unlock(adapter);
		return;
	}
	if (!vmm_engine_want(sched, timeout)) {
		vmm_recover(sched, timeout);
		return;
	}
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_sched_kick(adapter);
}

/* Does the step that is due on one node. Returns false if there was none. */
static bool watch_node(struct vmm_sched *sched, uint32_t index, uint64_t *when_ns)
{
	struct vmm_node *node = &sched->node[index];
	uint64_t now = vmm_os_now_ns(sched->adapter->os);
	struct vmm_timeout timeout;

	vmm_state_lock(sched->adapter);
	enum step step = next_step(sched, node, now, when_ns);
	if (step != STEP_NONE)
		describe(sched, index, now, &timeout);
	vmm_state_unlock(sched->adapter);
	if (step == STEP_QUERY)
		query(sched, &timeout);
	else if (step == STEP_TIMEOUT)
		time_out(sched, &timeout);
	return step != STEP_NONE;
}

/* Does all steps that are due. Returns the time of the next one. */
static uint64_t watch_all(struct vmm_sched *sched)
{
	uint64_t first = VMM_OS_FOREVER;

	for (uint32_t n = 0; n < sched->adapter->node_count; n++) {
		uint64_t when_ns = VMM_OS_FOREVER;

		while (!vmm_sched_is_gone(sched->adapter) && watch_node(sched, n, &when_ns))
			;
		if (vmm_sched_is_gone(sched->adapter))
			return VMM_OS_FOREVER;
		first = vmm_min_u64(first, when_ns);
	}
	uint64_t when_ns;
	while (!vmm_sched_is_gone(sched->adapter) && vmm_hw_watch(sched, &when_ns))
		;
	if (vmm_sched_is_gone(sched->adapter))
		return VMM_OS_FOREVER;
	return vmm_min_u64(first, when_ns);
}

/*
 * Returns whether the watchdog may sleep without a limit. A submission after this sees
 * watch_asleep.
 */
static bool fall_asleep(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;

	atomic_store(&sched->watch_asleep, true);
	if (vmm_sched_is_gone(adapter))
		return true;
	vmm_state_lock(adapter);
	bool idle = !sched->hardware_total && !vmm_hw_is_watched_locked(sched);
	vmm_state_unlock(adapter);
	if (!idle)
		atomic_store(&sched->watch_asleep, false);
	return idle;
}

static void watch(void *argument)
{
	struct vmm_sched *sched = argument;

	while (!atomic_load(&sched->watch_quit)) {
		uint32_t seen = atomic_load(&sched->watch);
		uint64_t when_ns = watch_all(sched);

		if (when_ns == VMM_OS_FOREVER && !fall_asleep(sched))
			continue;
		if (!atomic_load(&sched->watch_quit) &&
		    vmm_os_wait(sched->adapter->os, &sched->watch, seen, when_ns, NULL, 0) ==
			    VMM_UNSUCCESSFUL)
			return;
		atomic_store(&sched->watch_asleep, false);
	}
}

static vmm_status check(const struct vmm_adapter *adapter, const struct vidmm_tdr_options *o)
{
	if ((o->level != 0 && o->level != 1 && o->level != 3) || !o->delay_ms || !o->ddi_delay_ms ||
	    !o->limit_time_ms || o->limit_count > VIDMM_TDR_LIMIT_MAX || o->debug_mode > 3)
		return vmm_refuse_rule(
			adapter->observe, VMM_INVALID_PARAMETER, "TDR-01", 0, 0,
			"timeouts refused: level %u (must be 0, 1 or 3), delay %u ms, DDI delay "
			"%u ms, %u resets (at most %u) in %u ms, debug mode %u (at most 3); times "
			"must not be 0",
			o->level, o->delay_ms, o->ddi_delay_ms, o->limit_count, VIDMM_TDR_LIMIT_MAX,
			o->limit_time_ms, o->debug_mode);
	if (o->debug_mode == 1 || o->debug_mode == 2)
		return VMM_OK;
	return vmm_refuse_reason(
		adapter->observe, VMM_NOT_SUPPORTED, 0, 0,
		"TDR-01: debug mode %u of timeouts is not built, only 1 (ignore) and 2 (recover) "
		"are",
		o->debug_mode);
}

vmm_status vmm_watch_start(struct vmm_adapter *adapter, const struct vidmm_tdr_options *options)
{
	static const struct vidmm_tdr_options defaults = VIDMM_TDR_DEFAULTS;
	struct vmm_sched *sched = adapter->sched;

	sched->tdr = options ? *options : defaults;
	vmm_status status = check(adapter, &sched->tdr);
	if (!vmm_ok(status) || !sched->tdr.level)
		return status;
	return vmm_os_thread_create(adapter->os, "vidsch watchdog", watch, sched, &sched->watchdog);
}

/* Returns what keeps the node from timing out; NULL: nothing. */
static const char *obstacle_locked(const struct vmm_sched *sched, uint32_t node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (!sched->watchdog)
		return "timeouts are not detected (level 0)";
	return vmm_list_empty(&sched->node[node].hardware) ? "the GPU has no packet of it" : NULL;
}

vmm_status vmm_watch_expire(struct vmm_adapter *adapter, uint32_t node)
{
	struct vmm_sched *sched = adapter->sched;

	if (node >= adapter->node_count)
		return vmm_refuse_rule(adapter->observe, VMM_INVALID_PARAMETER, "TDR-02", 0, 0,
				       "node %u cannot time out: the adapter has %u nodes", node,
				       adapter->node_count);
	vmm_state_lock(adapter);
	const char *obstacle = obstacle_locked(sched, node);
	sched->node[node].expired = !obstacle;
	vmm_state_unlock(adapter);
	if (obstacle)
		return vmm_refuse_reason(adapter->observe, STATUS_INVALID_DEVICE_STATE, 0, 0,
					 "TDR-02: node %u cannot time out: %s", node, obstacle);
	vmm_watch_wake(sched);
	return VMM_OK;
}

void vmm_watch_stop(struct vmm_sched *sched)
{
	if (!sched->watchdog)
		return;
	atomic_store(&sched->watch_quit, true);
	vmm_watch_wake(sched);
	vmm_os_thread_join(sched->watchdog);
	sched->watchdog = NULL;
}
