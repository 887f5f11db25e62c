/* SPDX-License-Identifier: MIT */
/*
 * Timers of the sim back end: a binary heap of threads by deadline; equal deadlines in order of
 * their requests. A thread is in the heap at most once and stores its index, so that a wake before
 * the deadline removes it in O(log n).
 */
#include "os/os_internal.h"

static bool earlier(const struct vmm_os_thread *a, const struct vmm_os_thread *b)
{
	if (a->sim.deadline_ns != b->sim.deadline_ns)
		return a->sim.deadline_ns < b->sim.deadline_ns;
	return a->sim.timer_sequence < b->sim.timer_sequence;
}

static void set_entry(struct vmm_os_sim *sim, uint32_t index, struct vmm_os_thread *thread)
{
	sim->timers[index] = thread;
	thread->sim.heap_index = index;
}

static void sift_up(struct vmm_os_sim *sim, uint32_t index, struct vmm_os_thread *thread)
{
	while (index > 0) {
		uint32_t parent = (index - 1) / 2;

		if (!earlier(thread, sim->timers[parent]))
			break;
		set_entry(sim, index, sim->timers[parent]);
		index = parent;
	}
	set_entry(sim, index, thread);
}

static void sift_down(struct vmm_os_sim *sim, uint32_t index, struct vmm_os_thread *thread)
{
	for (;;) {
		uint32_t child = 2 * index + 1;

		if (child >= sim->timer_count)
			break;
		if (child + 1 < sim->timer_count &&
		    earlier(sim->timers[child + 1], sim->timers[child]))
			child++;
		if (!earlier(sim->timers[child], thread))
			break;
		set_entry(sim, index, sim->timers[child]);
		index = child;
	}
	set_entry(sim, index, thread);
}

void vmm_os_sim_timer_add(struct vmm_os_sim *sim, struct vmm_os_thread *thread)
{
	vmm_assert(sim->timer_count < sim->capacity && thread->sim.heap_index == SIM_NO_TIMER);
	thread->sim.timer_sequence = sim->timer_sequence++;
	sift_up(sim, sim->timer_count++, thread);
}

void vmm_os_sim_timer_remove(struct vmm_os_sim *sim, struct vmm_os_thread *thread)
{
	uint32_t index = thread->sim.heap_index;
	struct vmm_os_thread *last = sim->timers[--sim->timer_count];

	vmm_assert(sim->timers[index] == thread);
	thread->sim.heap_index = SIM_NO_TIMER;
	if (last == thread)
		return;
	if (index > 0 && earlier(last, sim->timers[(index - 1) / 2]))
		sift_up(sim, index, last);
	else
		sift_down(sim, index, last);
}
