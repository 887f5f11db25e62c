/* SPDX-License-Identifier: MIT */
/*
 * Signals of the CPU. All entries are looked up and checked before the first value changes. All
 * values have changed when the call returns. (MFN-21)
 */
#include "sync/sync_private.h"

static vmm_status check_flags(const struct vmm_process *process, const struct vmm_sync_list *list)
{
	const uint32_t known = 0x7;

	if (vmm_unlikely(list->flags & (VMM_SYNC_ENQUEUE_CPU_EVENT | ~known)))
		return vmm_refuse_rule(
			process->world->observe, VMM_INVALID_PARAMETER,
			list->flags & ~known ? "SYN-24" : "MFN-42", process->id, 0,
			"signal from the CPU: flags 0x%x: %s", list->flags,
			list->flags & ~known
				? "reserved bits are set"
				: "EnqueueCpuEvent is valid only in the queue of a context");
	if (vmm_likely(list->count - 1 < VMM_SYNC_SIGNALS_MAX))
		return VMM_OK;
	return vmm_refuse_rule(process->world->observe, VMM_INVALID_PARAMETER, "MFN-20",
			       process->id, 0, "signal from the CPU: %u objects; 1 to %u are valid",
			       list->count, VMM_SYNC_SIGNALS_MAX);
}

/*
 * Returns whether the signal is refused because it would lower the fence. The maximum that a reset
 * stored is kept without an error (TDRS-12). If another thread raises the fence after this check,
 * the fence keeps that higher value, as if the other signal had come after this one. (MFN-23)
 */
static bool is_lower(const struct vmm_sync_object *object, uint64_t value, bool rewind)
{
	if (rewind)
		return false;
	uint64_t now = vmm_sync_value(object);

	return value < now && now != UINT64_MAX;
}

/* Emits the finding for the first check that fails, and returns its status. */
VMM_COLD static vmm_status refuse_cpu_signal(const struct vmm_sync *sync, uint64_t value)
	VMM_REQUIRES(vmm_process_lock_class)
{
	struct vmm_observe *observe = sync->process->world->observe;

	vmm_assert_held(&sync->process->lock);
	if (!vmm_sync_is_monitored(sync->object))
		return vmm_refuse_rule(
			observe, VMM_INVALID_PARAMETER, vmm_sync_cpu_rule(sync->object, false),
			sync->process->id, sync->handle,
			"signal from the CPU: 0x%08x is of type %u; only monitored fences are",
			sync->handle, sync->object->type);
	if (sync->flags & VMM_SYNC_NO_SIGNAL) {
		const char *what, *rule = vmm_sync_no_signal(sync, &what);

		return vmm_refuse_rule(observe, VMM_ACCESS_DENIED, rule, sync->process->id,
				       sync->handle, "signal: 0x%08x %s", sync->handle, what);
	}
	return vmm_refuse_rule(
		observe, VMM_INVALID_PARAMETER, "MFN-08", sync->process->id, sync->handle,
		"signal: the value %llu of 0x%08x is more than 2^31 - 1 away from %llu, and "
		"its storage has 32 bits",
		(unsigned long long)value, sync->handle,
		(unsigned long long)vmm_sync_value(sync->object));
}

VMM_COLD static vmm_status refuse_lower(const struct vmm_sync *sync, uint64_t value)
{
	return vmm_refuse_rule(
		sync->process->world->observe, VMM_INVALID_PARAMETER, "MFN-23", sync->process->id,
		sync->handle,
		"signal from the CPU: the value %llu of 0x%08x is lower than the fence's, %llu, "
		"and AllowFenceRewind is not set",
		(unsigned long long)value, sync->handle,
		(unsigned long long)vmm_sync_value(sync->object));
}

static vmm_status find_locked(const struct vmm_sync_caller *caller,
			      const struct vmm_sync_list *list, struct vmm_sync_object **objects)
	VMM_REQUIRES(vmm_process_lock_class)
{
	bool rewind = list->flags & VMM_SYNC_ALLOW_REWIND;
	struct vmm_device *device;
	vmm_status status = vmm_sync_find_device_locked(caller, &device);

	vmm_assert_held(&caller->process->lock);
	for (uint32_t i = 0; i < list->count && status == VMM_OK; i++) {
		const struct vmm_sync *sync = vmm_sync_find_locked(
			caller->process, list->handles[i], "signal from the CPU");

		if (vmm_unlikely(!sync))
			return VMM_INVALID_PARAMETER;
		if (vmm_unlikely(!vmm_sync_is_monitored(sync->object) ||
				 (sync->flags & VMM_SYNC_NO_SIGNAL) ||
				 !vmm_sync_in_range(sync->object, list->values[i], rewind)))
			return refuse_cpu_signal(sync, list->values[i]);
		if (vmm_unlikely(is_lower(sync->object, list->values[i], rewind)))
			return refuse_lower(sync, list->values[i]);
		objects[i] = sync->object;
		vmm_sync_enable_lockless_locked(sync);
	}
	return status;
}

/* Signals the objects: their values have changed when the call returns. (MFN-21, MFN-41) */
vmm_status vmm_sync_signal(const struct vmm_sync_caller *caller, const struct vmm_sync_list *list)
{
	struct vmm_sync_object *objects[VMM_SYNC_SIGNALS_MAX];
	uint32_t awaited = 0;

	vmm_assert(vmm_sync_list_is_valid(list));
	vmm_status status = check_flags(caller->process, list);
	if (vmm_unlikely(!vmm_ok(status)))
		return status;
	vmm_process_lock(caller->process);
	status = find_locked(caller, list, objects);
	for (uint32_t i = 0; i < list->count && status == VMM_OK; i++) {
		struct vmm_sync_object *object = objects[i];

		if (vmm_likely(!vmm_sync_raise(object, list->values[i],
					       list->flags & VMM_SYNC_ALLOW_REWIND)))
			continue;
		vmm_sync_get(object); /* the handle may be destroyed once the lock is released */
		objects[awaited++] = object;
	}
	vmm_process_unlock(caller->process);
	for (uint32_t i = 0; i < awaited; i++) {
		vmm_sync_deliver(objects[i]);
		vmm_sync_put(objects[i]);
	}
	return status;
}
