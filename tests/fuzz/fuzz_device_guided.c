/* SPDX-License-Identifier: MIT */
/*
 * guided_device: a device model and the miniport that drives it, guided by coverage. The first
 * bytes of an input change the description of the device; the rest are accesses of the miniport and
 * calls of the model's services. An impossible description is refused. Otherwise every step ends,
 * an access of the model lies inside its BAR and is aligned, and no interrupt comes after the stop.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guided.h"
#include "support/test_device.h"
#include "unit/port/port_fixture.h"

/* The resources of the test device, in the order of its BARs. */
enum { MEMORY, REGISTERS, PORTS };

struct input {
	const uint8_t *data;
	size_t bytes;
};

static struct test_device d;
static struct port_fixture *fixture;

static uint64_t take(struct input *in, uint32_t bytes)
{
	uint64_t value = 0;

	for (; bytes && in->bytes; bytes--, in->bytes--)
		value = value << 8 | *in->data++;
	return value;
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "not true: %s\n", what);
	abort();
}

/* Lowers the line, so that an interrupt is not delivered for ever. */
static BOOLEAN interrupt_routine(IN_CONST_PVOID adapter, ULONG message)
{
	(void)adapter;
	must(d.services != NULL, "no interrupt comes after the stop");
	d.services->lower_interrupt(d.services->handle, message);
	return TRUE;
}

/* Changes members of the description: 0 leaves all as they are. */
static void describe(struct input *in)
{
	struct vidmm_device_model *model = &d.model;

	for (uint64_t count = take(in, 1) % 4; count; count--) {
		struct vidmm_device_bar *bar = &model->bar[take(in, 1) % VIDMM_DEVICE_BARS];

		switch (take(in, 1) % 8) {
		case 0:
			bar->kind = (uint32_t)take(in, 1) % 5;
			break;
		case 1:
			bar->flags = (uint32_t)take(in, 1) % 8;
			break;
		case 2:
			bar->size_bytes = (uint64_t)1 << take(in, 1) % 26;
			break;
		case 3:
			bar->size_bytes = take(in, 8);
			break;
		case 4:
			model->interrupt_messages = (uint32_t)take(in, 1);
			break;
		case 5:
			model->config_bytes = (uint32_t)take(in, 2);
			break;
		case 6:
			d.image[0x34] = (uint8_t)take(in, 1);
			d.image[take(in, 1)] = (uint8_t)take(in, 1);
			break;
		default:
			model->vendor_id = (uint16_t)take(in, 2);
		}
	}
}

static const CM_PARTIAL_RESOURCE_DESCRIPTOR *resource(uint32_t index)
{
	const CM_PARTIAL_RESOURCE_LIST *list =
		&fixture->m->device_info.TranslatedResourceList->List[0].PartialResourceList;

	return index < list->Count ? &list->PartialDescriptors[index] : NULL;
}

/* Maps a resource of the device. NULL: it has none with that number, or the call is refused. */
static uint8_t *map(uint32_t index, bool ports)
{
	const CM_PARTIAL_RESOURCE_DESCRIPTOR *r = resource(index);
	const DXGKRNL_INTERFACE *services = &fixture->m->services;
	PVOID pointer = NULL;

	if (!r || r->Type == CmResourceTypeInterrupt ||
	    services->DxgkCbMapMemory(services->DeviceHandle, r->u.Memory.Start, r->u.Memory.Length,
				      ports, FALSE, MmNonCached, &pointer) != STATUS_SUCCESS)
		return NULL;
	return pointer;
}

static void access_register(uint8_t *at, uint64_t how)
{
	switch (how % 6) {
	case 0:
		(void)READ_REGISTER_UCHAR(at);
		break;
	case 1:
		(void)READ_REGISTER_ULONG((volatile ULONG *)(void *)at);
		break;
	case 2:
		(void)READ_REGISTER_ULONG64((volatile ULONG64 *)(void *)at);
		break;
	case 3:
		WRITE_REGISTER_USHORT((volatile USHORT *)(void *)at, (USHORT)how);
		break;
	case 4:
		WRITE_REGISTER_ULONG((volatile ULONG *)(void *)at, (ULONG)how);
		break;
	default:
		WRITE_REGISTER_ULONG64((volatile ULONG64 *)(void *)at, how);
	}
}

static void access_port(uint8_t *at, uint64_t how)
{
	switch (how % 4) {
	case 0:
		(void)READ_PORT_UCHAR(at);
		break;
	case 1:
		(void)READ_PORT_ULONG((PULONG)(void *)at);
		break;
	case 2:
		WRITE_PORT_USHORT((PUSHORT)(void *)at, (USHORT)how);
		break;
	default:
		WRITE_PORT_ULONG((PULONG)(void *)at, (ULONG)how);
	}
}

/* What the model has seen lies in its BARs and is aligned. */
static void check_accesses(void)
{
	uint32_t count = d.accesses < TEST_DEVICE_ACCESSES ? d.accesses : TEST_DEVICE_ACCESSES;

	for (uint32_t i = 0; i < count; i++) {
		const struct test_device_access *a = &d.access[i];

		must(a->bar < VIDMM_DEVICE_BARS && a->width &&
			     a->offset + a->width <= d.model.bar[a->bar].size_bytes &&
			     a->offset % a->width == 0,
		     "an access lies inside its BAR and is aligned");
	}
	d.accesses = 0;
}

static void access_bar(struct input *in, uint32_t index, bool ports)
{
	uint8_t *base = map(index, ports);

	if (!base)
		return;
	/* Beyond the end of a BAR there may be no memory, so an access there crashes any driver. */
	uint64_t length = resource(index)->u.Memory.Length, offset = take(in, 3) % length;

	if (!ports && offset + 8 > length)
		offset = length - 8;
	if (ports)
		access_port(base + offset, take(in, 4));
	else
		access_register(base + offset, take(in, 4));
	(void)fixture->m->services.DxgkCbUnmapMemory(fixture->m->services.DeviceHandle, base);
}

static void access_config(struct input *in, bool write)
{
	const DXGKRNL_INTERFACE *s = &fixture->m->services;
	ULONG offset = (ULONG)take(in, 2), length = (ULONG)take(in, 1), done = 0;
	uint8_t bytes[256] = {0};

	if (write)
		(void)s->DxgkCbWriteDeviceSpace(s->DeviceHandle, DXGK_WHICHSPACE_CONFIG, bytes,
						offset, length, &done);
	else
		(void)s->DxgkCbReadDeviceSpace(s->DeviceHandle, DXGK_WHICHSPACE_CONFIG, bytes,
					       offset, length, &done);
	must(done <= length, "no more bytes are transferred than asked for");
}

static void access_memory(struct input *in, bool write)
{
	const CM_PARTIAL_RESOURCE_DESCRIPTOR *r = resource((uint32_t)take(in, 1) % 4);
	uint64_t start = r ? (uint64_t)r->u.Memory.Start.QuadPart + r->u.Memory.Length : 0;
	uint64_t address = start - take(in, 2), length = take(in, 1);
	uint8_t bytes[256] = {0};

	if (write)
		(void)d.services->dma_write(d.services->handle, address, bytes, length);
	else
		(void)d.services->dma_read(d.services->handle, address, bytes, length);
}

static void step(struct input *in)
{
	const struct vidmm_device_services *s = d.services;
	uint64_t op = take(in, 1) % 12;

	switch (op) {
	case 0:
	case 1:
		access_bar(in, (uint32_t)take(in, 1) % 4, op == 1);
		break;
	case 2:
	case 3:
		access_config(in, op == 3);
		break;
	case 4:
		s->raise_interrupt(s->handle, (uint32_t)take(in, 1));
		break;
	case 5:
		s->lower_interrupt(s->handle, (uint32_t)take(in, 1));
		break;
	case 6:
	case 7:
		access_memory(in, op == 7);
		break;
	case 8:
		s->schedule(s->handle, (uint32_t)take(in, 1) % 20,
			    s->now_ns(s->handle) + take(in, 2));
		break;
	case 9:
		s->schedule(s->handle, (uint32_t)take(in, 1) % 20, VIDMM_DEVICE_NEVER);
		break;
	case 10:
		s->driver_error(s->handle, "a mistake");
		break;
	default:
		vmm_os_sleep_until(fixture->os, vmm_os_now_ns(fixture->os) + take(in, 2));
	}
	check_accesses();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	void *state;

	must(port_fixture_setup(&state) == 0, "a port can be made");
	fixture = state;
	test_device_init(&d);
	describe(&in);
	fixture->m->settings.table.DxgkDdiInterruptRoutine = interrupt_routine;
	fixture->options.bar_count = 0;
	fixture->options.device_model = &d.model;
	NTSTATUS status = port_fixture_start(fixture);
	must(status == STATUS_SUCCESS || fixture->reasons || fixture->findings,
	     "a refusal has a reason");
	while (status == STATUS_SUCCESS && in.bytes)
		step(&in);
	fixture->violations = fixture->findings = 0;
	must(port_fixture_teardown(&state) == 0, "nothing is left");
	return 0;
}
