/* SPDX-License-Identifier: MIT */
/* The memory bus; see bus.h. */
#include "bus.h"

void softgpu_bus_init(struct softgpu_bus *bus)
{
	bus->inside = bus->held = bus->waiting = 0;
	bus->hold_wanted = 0;
	KeInitializeEvent(&bus->drained, SynchronizationEvent, FALSE);
	KeInitializeEvent(&bus->released, NotificationEvent, TRUE);
	KeInitializeEvent(&bus->none_waiting, SynchronizationEvent, FALSE);
}

static int is_held(struct softgpu_bus *bus)
{
	return InterlockedOr(&bus->held, 0) != 0;
}

/*
 * A Dekker pattern: a thread that enters counts itself in `inside` and then reads `held`. A holder
 * sets `held` and then reads `inside`. At least one sees the other.
 */
static int try_enter(struct softgpu_bus *bus)
{
	InterlockedIncrement(&bus->inside);
	if (!is_held(bus))
		return 1;
	softgpu_bus_leave(bus);
	return 0;
}

void softgpu_bus_enter(struct softgpu_bus *bus)
{
	if (try_enter(bus))
		return;
	InterlockedIncrement(&bus->waiting);
	do
		(void)KeWaitForSingleObject(&bus->released, Executive, KernelMode, FALSE, NULL);
	while (!try_enter(bus));
	if (!InterlockedDecrement(&bus->waiting))
		KeSetEvent(&bus->none_waiting, IO_NO_INCREMENT, FALSE);
}

void softgpu_bus_leave(struct softgpu_bus *bus)
{
	if (!InterlockedDecrement(&bus->inside) && is_held(bus))
		KeSetEvent(&bus->drained, IO_NO_INCREMENT, FALSE);
}

void softgpu_bus_hold(struct softgpu_bus *bus)
{
	while (InterlockedOr(&bus->waiting, 0))
		(void)KeWaitForSingleObject(&bus->none_waiting, Executive, KernelMode, FALSE, NULL);
	KeClearEvent(&bus->released);
	softgpu_store(&bus->hold_wanted, 1);
	InterlockedExchange(&bus->held, 1);
	while (InterlockedOr(&bus->inside, 0))
		(void)KeWaitForSingleObject(&bus->drained, Executive, KernelMode, FALSE, NULL);
}

void softgpu_bus_release(struct softgpu_bus *bus)
{
	softgpu_store(&bus->hold_wanted, 0);
	InterlockedExchange(&bus->held, 0);
	KeSetEvent(&bus->released, IO_NO_INCREMENT, FALSE);
}
