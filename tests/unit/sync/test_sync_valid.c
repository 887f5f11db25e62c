/* SPDX-License-Identifier: MIT */
/*
 * The predicates of sync's structures (sync/valid.c): true for a valid structure, and false when
 * one member is broken.
 */
#include "unit/breaks.h"

#include <string.h>

#include "sync/type.h"

struct valid {
	struct vmm_os *os;
	struct vmm_world world, other_world;
	struct vmm_adapter adapter;
	struct vmm_process process, other_process;
	struct vmm_device device;
	struct vmm_sync_page page;
	_Atomic uint64_t word;
	struct vmm_sync_object fence, mutex, notification;
	struct vmm_sync sync;
	struct vmm_sync_owner owner;
};

static void init_object(struct valid *v, struct vmm_sync_object *object, uint32_t type)
{
	object->world = &v->world;
	object->type = type;
	object->event = type == VMM_SYNC_CPU_NOTIFICATION ? 7 : -1;
	atomic_store(&object->references, 1);
	vmm_list_init(&object->awaited);
	vmm_list_init(&object->queue);
	vmm_list_init(&object->held);
	object->openings = 1;
}

static void start(struct valid *v)
{
	const struct vmm_os_config config = {.kind = VMM_OS_SIM};

	memset(v, 0, sizeof(*v));
	assert_int_equal(vmm_os_create(&config, &v->os), VMM_OK);
	v->world.os = v->os;
	vmm_os_mutex_init(&v->world.sync_lock, v->os, VMM_RANK_SYNC, "sync");
	v->process.world = v->adapter.world = &v->world;
	v->other_process.world = &v->other_world;
	v->device.process = &v->process;
	v->device.adapter = &v->adapter;
	init_object(v, &v->fence, VMM_SYNC_MONITORED_FENCE);
	v->fence.slot.page = &v->page;
	v->fence.word = &v->word;
	atomic_store(&v->fence.step, 1);
	init_object(v, &v->mutex, VMM_SYNC_MUTEX);
	v->mutex.units = v->mutex.units_max = 1;
	init_object(v, &v->notification, VMM_SYNC_CPU_NOTIFICATION);
	v->sync = (struct vmm_sync){.object = &v->fence,
				    .process = &v->process,
				    .device = &v->device,
				    .quick = VMM_SYNC_QUICK_SIGNAL | VMM_SYNC_QUICK_WAIT,
				    .address = &v->word};
	v->owner = (struct vmm_sync_owner){.device = &v->device, .number = 1};
	vmm_list_init(&v->owner.held);
	vmm_list_init(&v->owner.link);
}

static void stop(struct valid *v)
{
	vmm_os_mutex_finish(&v->world.sync_lock);
	vmm_os_destroy(v->os);
}

static void sync_valid_an_objects_members_match_its_type(void **state)
{
	static struct valid v;
	struct vmm_sync_object *fence = &v.fence;

	(void)state;
	start(&v);
	BREAKS(vmm_sync_object_is_valid(fence), fence->type, VMM_SYNC_TYPE_LIMIT);
	BREAKS(vmm_sync_object_is_valid(&v.mutex), v.mutex.type, 0);
	BREAKS(vmm_sync_object_is_valid(fence), fence->references, 0);
	BREAKS(vmm_sync_object_is_valid(fence), fence->world, NULL);
	BREAKS(vmm_sync_object_is_valid(fence), fence->word, NULL);
	BREAKS(vmm_sync_object_is_valid(&v.mutex), v.mutex.word, &v.word);
	BREAKS(vmm_sync_object_is_valid(fence), fence->slot.page, NULL);
	BREAKS(vmm_sync_object_is_valid(&v.mutex), v.mutex.slot.page, &v.page);
	BREAKS(vmm_sync_object_is_valid(fence), fence->slot.offset, 1);
	BREAKS(vmm_sync_object_is_valid(fence), fence->slot.offset, VMM_SYNC_PAGE_BYTES);
	BREAKS(vmm_sync_object_is_valid(fence), fence->step, 0);
	BREAKS(vmm_sync_object_is_valid(fence), fence->event, 3);
	BREAKS(vmm_sync_object_is_valid(&v.notification), v.notification.event, -1);
	BREAKS(vmm_sync_object_is_valid(&v.mutex), v.mutex.narrow, true);
	stop(&v);
}

static void sync_valid_an_objects_waits_units_and_owner_are_consistent(void **state)
{
	static struct valid v;
	struct vmm_sync_node node = {.rank = 1};
	struct vmm_sync_periodic_source source = {0};
	struct vmm_list waits;

	(void)state;
	start(&v);
	vmm_list_init(&waits);
	vmm_sync_lock(&v.world);
	BREAKS(vmm_sync_object_is_consistent_locked(&v.mutex), v.mutex.units, 2);
	BREAKS(vmm_sync_object_is_consistent_locked(&v.mutex), v.mutex.owner, &v.owner);
	BREAKS(vmm_sync_object_is_consistent_locked(&v.mutex), v.mutex.heap, &node);
	BREAKS(vmm_sync_object_is_consistent_locked(&v.fence), v.fence.heap, &node);
	BREAKS(vmm_sync_object_is_consistent_locked(&v.fence), v.fence.periodic_source, &source);
	v.fence.global_handle = 2;
	BREAKS(vmm_sync_object_is_consistent_locked(&v.fence), v.fence.openings, 0);
	vmm_list_push_back(&v.fence.queue, &node.link);
	assert_false(vmm_sync_object_is_consistent_locked(&v.fence));
	vmm_list_remove(&node.link);
	/* A fence with a waiter. */
	v.fence.heap = &node;
	vmm_list_push_back(&waits, &v.fence.awaited);
	atomic_store(&v.fence.waiters, 1);
	BREAKS(vmm_sync_object_is_consistent_locked(&v.fence), v.fence.waiters, 0);
	/* A held mutex. */
	v.mutex.owner = &v.owner;
	v.mutex.units = 0;
	vmm_list_push_back(&v.owner.held, &v.mutex.held);
	BREAKS(vmm_sync_object_is_consistent_locked(&v.mutex), v.mutex.units, 1);
	BREAKS(vmm_sync_object_is_consistent_locked(&v.mutex), v.mutex.owner, NULL);
	/* Its owner is in the list of the device. */
	assert_false(vmm_sync_owner_is_valid_locked(&v.owner));
	vmm_list_push_back(&waits, &v.owner.link);
	BREAKS(vmm_sync_owner_is_valid_locked(&v.owner), v.owner.number, 0);
	vmm_sync_unlock(&v.world);
	stop(&v);
}

static void sync_valid_an_opening_matches_its_object_and_device(void **state)
{
	static struct valid v;
	struct vmm_sync *sync = &v.sync;

	(void)state;
	start(&v);
	BREAKS(vmm_sync_is_valid(sync), sync->object, NULL);
	BREAKS(vmm_sync_is_valid(sync), v.fence.references, 0);
	BREAKS(vmm_sync_is_valid(sync), sync->process, NULL);
	BREAKS(vmm_sync_is_valid(sync), sync->process, &v.other_process);
	BREAKS(vmm_sync_is_valid(sync), v.device.process, &v.other_process);
	BREAKS(vmm_sync_is_valid(sync), sync->object, &v.mutex);
	BREAKS(vmm_sync_is_valid(sync), sync->denied, VMM_SYNC_NO_WAIT);
	BREAKS(vmm_sync_is_valid(sync), sync->owned, true);  /* it has no NoSignal */
	BREAKS(vmm_sync_is_valid(sync), sync->device, NULL); /* but is quick */
	BREAKS(vmm_sync_is_valid(sync), sync->flags, VMM_SYNC_NO_SIGNAL);
	BREAKS(vmm_sync_is_valid(sync), sync->driver_event, &v);
	BREAKS(vmm_sync_quick_is_valid(sync), v.fence.narrow, true);
	BREAKS(vmm_sync_quick_is_valid(sync), v.fence.word, NULL);
	BREAKS(vmm_sync_quick_is_valid(sync), sync->flags, VMM_SYNC_NO_WAIT);
	sync->quick = 0;
	sync->device = NULL;
	BREAKS(vmm_sync_is_valid(sync), sync->gpu_address, 4096);
	sync->object = &v.mutex;
	sync->address = NULL;
	BREAKS(vmm_sync_is_valid(sync), sync->address, &v.word);
	stop(&v);
}

static void sync_valid_waits_packets_and_batches(void **state)
{
	static struct valid v;
	struct vmm_sync_packet packet = {.wait.world = NULL};
	struct vmm_sync_wait *wait = &packet.wait;
	struct vmm_sleeper sleeper = {0};
	struct vmm_sync_batch batch;

	(void)state;
	start(&v);
	*wait = (struct vmm_sync_wait){.world = &v.world, .nodes = packet.local, .count = 2};
	BREAKS(vmm_sync_packet_is_valid(&packet), wait->world, NULL);
	BREAKS(vmm_sync_packet_is_valid(&packet), wait->nodes, NULL);
	BREAKS(vmm_sync_packet_is_valid(&packet), wait->count, VMM_SYNC_PACKET_NODES + 1);
	BREAKS(vmm_sync_packet_is_valid(&packet), wait->any, true);
	BREAKS(vmm_sync_packet_is_valid(&packet), wait->of_cpu, true);
	BREAKS(vmm_sync_packet_is_valid(&packet), wait->sleeper, &sleeper);
	BREAKS(vmm_sync_packet_is_valid(&packet), packet.has_event, true);
	vmm_sync_lock(&v.world);
	BREAKS(vmm_sync_wait_is_valid_locked(wait), wait->nodes, NULL);
	BREAKS(vmm_sync_wait_is_valid_locked(wait), wait->count, 0);
	BREAKS(vmm_sync_wait_is_valid_locked(wait), wait->missing, 3);
	BREAKS(vmm_sync_wait_is_valid_locked(wait), wait->any, true);
	wait->missing = 1;
	BREAKS(vmm_sync_wait_is_valid_locked(wait), wait->queued, true);
	BREAKS(vmm_sync_wait_is_valid_locked(wait), wait->done, true);
	vmm_sync_unlock(&v.world);
	vmm_sync_batch_init(&batch, v.os);
	BREAKS(vmm_sync_batch_is_valid(&batch), batch.os, NULL);
	BREAKS(vmm_sync_batch_is_valid(&batch), batch.count, VMM_SYNC_BATCH + 1);
	stop(&v);
}

static void sync_valid_callers_and_lists(void **state)
{
	static struct valid v;
	const uint32_t handle = 0x40000000;
	const uint64_t value = 1;
	struct vmm_sync_list list = {.handles = &handle, .values = &value, .count = 1};
	struct vmm_sync_caller caller;

	(void)state;
	start(&v);
	caller = (struct vmm_sync_caller){.process = &v.process, .device = &v.device};
	BREAKS(vmm_sync_caller_is_valid(&caller), caller.process, NULL);
	BREAKS(vmm_sync_caller_is_valid(&caller), caller.process, &v.other_process);
	BREAKS(vmm_sync_caller_is_valid(&caller), v.device.adapter, NULL);
	BREAKS(vmm_sync_list_is_valid(&list), list.handles, NULL);
	BREAKS(vmm_sync_list_is_valid(&list), list.values, NULL);
	stop(&v);
}

static void sync_valid_keyed_mutexes(void **state)
{
	static struct valid v;
	static struct vmm_keyed keyed, another;
	struct vmm_keyed_opening opening = {.keyed = &keyed, .process = &v.process};

	(void)state;
	start(&v);
	keyed.world = another.world = &v.world;
	keyed.references = another.references = 1;
	BREAKS(vmm_keyed_is_valid(&keyed), keyed.references, 0);
	BREAKS(vmm_keyed_is_valid(&keyed), keyed.world, NULL);
	BREAKS(vmm_keyed_opening_is_valid(&opening), opening.process, &v.other_process);
	BREAKS(vmm_keyed_opening_is_valid(&opening), opening.keyed, NULL);
	BREAKS(vmm_keyed_opening_is_valid(&opening), keyed.references, 0);
	vmm_sync_lock(&v.world);
	keyed.holder = &opening;
	BREAKS(vmm_keyed_is_consistent_locked(&keyed), keyed.abandoned, true);
	BREAKS(vmm_keyed_is_consistent_locked(&keyed), opening.keyed, &another);
	vmm_sync_unlock(&v.world);
	stop(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sync_valid_an_objects_members_match_its_type),
		cmocka_unit_test(sync_valid_an_objects_waits_units_and_owner_are_consistent),
		cmocka_unit_test(sync_valid_an_opening_matches_its_object_and_device),
		cmocka_unit_test(sync_valid_waits_packets_and_batches),
		cmocka_unit_test(sync_valid_callers_and_lists),
		cmocka_unit_test(sync_valid_keyed_mutexes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
