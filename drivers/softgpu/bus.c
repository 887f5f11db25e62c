/* SPDX-License-Identifier: MIT */
/* The memory bus: see bus.h. */
#include "bus.h"

void softgpu_bus_init(struct softgpu_bus *bus)
{
	bus->inside = bus->held = bus->turned_away = 0;
	bus->wanted = 0;
	KeInitializeEvent(&bus->left, SynchronizationEvent, FALSE);
	KeInitializeEvent(&bus->open, NotificationEvent, TRUE);
	KeInitializeEvent(&bus->let_in, SynchronizationEvent, FALSE);
}

static int is_held(struct softgpu_bus *bus)
{
	return InterlockedOr(&bus->held, 0) != 0;
}

/* Who comes counts himself, then looks whether it is held; a holder says so, then counts who is inside. One sees the other. */
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
	InterlockedIncrement(&bus->turned_away);
	do
		(void)KeWaitForSingleObject(&bus->open, Executive, KernelMode, FALSE, NULL);
	while (!try_enter(bus));
	if (!InterlockedDecrement(&bus->turned_away))
		KeSetEvent(&bus->let_in, IO_NO_INCREMENT, FALSE);
}

void softgpu_bus_leave(struct softgpu_bus *bus)
{
	if (!InterlockedDecrement(&bus->inside) && is_held(bus))
		KeSetEvent(&bus->left, IO_NO_INCREMENT, FALSE);
}

void softgpu_bus_hold(struct softgpu_bus *bus)
{
	while (InterlockedOr(&bus->turned_away, 0))
		(void)KeWaitForSingleObject(&bus->let_in, Executive, KernelMode, FALSE, NULL);
	KeClearEvent(&bus->open);
	softgpu_store(&bus->wanted, 1);
	InterlockedExchange(&bus->held, 1);
	while (InterlockedOr(&bus->inside, 0))
		(void)KeWaitForSingleObject(&bus->left, Executive, KernelMode, FALSE, NULL);
}

void softgpu_bus_release(struct softgpu_bus *bus)
{
	softgpu_store(&bus->wanted, 0);
	InterlockedExchange(&bus->held, 0);
	KeSetEvent(&bus->open, IO_NO_INCREMENT, FALSE);
}
