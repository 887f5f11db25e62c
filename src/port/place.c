/* SPDX-License-Identifier: MIT */
/*
 * Where the calling thread is in a miniport, for reports about a crash or a hang of the driver. The
 * functions only read and write memory, so a signal handler may call them: the thread may be
 * anywhere.
 */
#include <vidmm/vidmm.h>
#include "port/port_internal.h"

static size_t append(char *name, size_t size, size_t length, const char *text)
{
	for (; *text && length + 1 < size; text++)
		name[length++] = *text;
	name[length] = '\0';
	return length;
}

/* As the documentation spells it: create_allocation is DxgkDdiCreateAllocation. */
void vmm_port_ddi_name(char *name, size_t size, uint32_t ddi)
{
	size_t length = append(name, size, 0, "DxgkDdi");
	bool first = true;

	for (const char *c = vmm_observe_reason_name(VIDMM_EVENT_DDI, ddi); *c; c++) {
		const bool lower = *c >= 'a' && *c <= 'z';

		if (*c != '_' && length + 1 < size)
			name[length++] = first && lower ? (char)(*c - 'a' + 'A') : *c;
		first = *c == '_';
	}
	name[length] = '\0';
}

static void name_place(struct vidmm_driver_place *place, uint32_t number)
{
	switch (number) {
	case VMM_PORT_PLACE_DRIVER_ENTRY:
		append(place->routine, sizeof(place->routine), 0, "DriverEntry");
		break;
	case VMM_PORT_PLACE_DPC:
		append(place->routine, sizeof(place->routine), 0, "DxgkDdiDpcRoutine");
		break;
	case VMM_PORT_PLACE_INTERRUPT:
		append(place->routine, sizeof(place->routine), 0, "DxgkDdiInterruptRoutine");
		break;
	case VMM_PORT_PLACE_SYNCHRONIZED:
		append(place->routine, sizeof(place->routine), 0,
		       "a routine of DxgkCbSynchronizeExecution");
		break;
	default:
		if (number >= VMM_PORT_PLACE_QUERY)
			place->query_type = (int32_t)(number - VMM_PORT_PLACE_QUERY);
		vmm_port_ddi_name(place->routine, sizeof(place->routine),
				  place->query_type < 0 ? number : VIDMM_DDI_QUERY_ADAPTER_INFO);
	}
}

void vmm_port_place_of(struct vidmm_driver_place *place, uint64_t value)
{
	if (value)
		name_place(place, (uint32_t)(value >> VMM_PORT_PLACE_SHIFT));
}

bool vidmm_driver_place(struct vidmm_driver_place *place)
{
	const struct vmm_os_own *own = vmm_os_here.own;

	*place = (struct vidmm_driver_place){.query_type = -1};
	if (!own || !vmm_os_here.id)
		return false;
	place->waits_in = (const char *)(uintptr_t)own->slot[VMM_NT_SLOT_WAIT];
	vmm_port_place_of(place, own->slot[VMM_PORT_THREAD_SLOT]);
	return place->routine[0] || place->waits_in;
}

bool vidmm_driver_bug_check(struct vidmm_driver_bug_check *check)
{
	struct vmm_nt_bug_check made;
	const bool any = vmm_nt_bug_checked(&made);

	check->code = made.code;
	for (int i = 0; i < 4; i++)
		check->parameters[i] = made.parameters[i];
	return any;
}

bool vidmm_driver_block(const void *address, struct vidmm_driver_block *block)
{
	struct vmm_nt_block found;

	*block = (struct vidmm_driver_block){.allocated = {.query_type = -1}};
	if (!vmm_nt_guarded_block(address, &found))
		return false;
	for (int i = 0; i < 4; i++) {
		const char c = (char)(found.tag >> 8 * i);

		block->tag[i] = c >= 0x20 && c <= 0x7E ? c : '.';
	}
	block->is_mdl = found.is_mdl;
	block->freed = found.freed;
	block->size_bytes = found.size_bytes;
	block->offset = found.offset;
	block->caller = found.caller;
	vmm_port_place_of(&block->allocated, found.place);
	return true;
}
