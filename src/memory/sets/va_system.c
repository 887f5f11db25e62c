/* SPDX-License-Identifier: MIT */
/*
 * The system paging process: an address space in which the paging contexts execute transfers and
 * fills (PAG-26). It has one range, the paging window, whose page tables exist from the adapter's
 * start to its stop. The miniport sets them up with the CPU, before any paging buffer is executed
 * (VA-11). transfer/paging_virtual.c maps memory into the window.
 */
#include "memory/sets/va_private.h"
#include "memory/state/state.h"
#include "memory/transfer/paging.h"
#include "memory/transfer/va_entries.h"
#include "vaspace/vaspace.h"

/*
 * Largest chunk of a transfer or fill, in bytes. The entries for the two sides of an 8 MiB chunk
 * have 64 KiB, so a larger chunk would not save paging buffers. The tables for both sides, where a
 * table of 4 KiB covers 2 MiB, have 40 KiB.
 */
#define SIDE_BYTES_MAX ((uint64_t)8 << 20)

NTSTATUS vmm_va_begin_system(struct vmm_adapter *adapter, void **kmd_process)
{
	struct vmm_va *va;

	*kmd_process = NULL;
	if (vmm_likely(!adapter->memory->caps->gpummu.supported))
		return STATUS_SUCCESS;
	NTSTATUS status = vmm_va_space_create(adapter, NULL, &va);
	if (!NT_SUCCESS(status))
		return status;
	va->created = true;
	*kmd_process = va->kmd_process;
	vmm_paging_lock(adapter);
	adapter->memory->window.va = va;
	vmm_paging_commit(adapter);
	return STATUS_SUCCESS;
}

void vmm_va_end_system(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;

	if (!memory || !memory->caps->gpummu.supported)
		return;
	vmm_paging_lock(adapter);
	struct vmm_va *va = memory->window.va;
	bool created = va && va->created;

	if (created)
		va->created = false;
	vmm_paging_commit(adapter);
	if (created)
		vmm_port_destroy_process(adapter->port, va->kmd_process);
}

/*
 * Takes the addresses of the window: the largest power of two that the address space has free. A
 * chunk begins at its page's offset in a 64 KiB page (VA-05), so each side has 64 KiB more than the
 * largest chunk.
 */
static vmm_status take_window(struct vmm_paging_window *window)
{
	const struct vmm_va_content nothing = {.kind = VMM_VA_NOTHING};
	vmm_status status = VMM_NO_MEMORY;

	for (uint64_t bytes = SIDE_BYTES_MAX; bytes >= VMM_LARGE_PAGE_SIZE; bytes /= 2) {
		const struct vmm_va_request request = {.size = 2 * (bytes + VMM_LARGE_PAGE_SIZE),
						       .alignment = VMM_LARGE_PAGE_SIZE};
		struct vmm_va_range *range;

		status = vmm_vaspace_take(window->va->space, &request, VMM_VA_BY_SYSTEM, &nothing,
					  &range);
		if (status != VMM_OK)
			continue;
		window->base = range->node.base;
		window->side_bytes = bytes + VMM_LARGE_PAGE_SIZE;
		break;
	}
	return status;
}

/* Gives the miniport the root for the context that executes paging buffers (VA-12). */
static void send_root(struct vmm_va *va)
{
	const struct vmm_va_context context = {.kmd_context =
						       va->memory->adapter->paging_context[0]};

	vmm_va_send_root(va, &context);
}

static vmm_status create_tables(struct vmm_paging_window *window)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_va *va = window->va;

	vmm_assert_held(&va->memory->adapter->paging_lock);
	vmm_status status = vmm_va_root_create(va);
	if (status == VMM_OK)
		status = vmm_va_create_tables(va, window->base, 2 * window->side_bytes);
	return status;
}

vmm_status vmm_va_start_system(struct vmm_adapter *adapter)
{
	struct vmm_paging_window *window = &adapter->memory->window;

	vmm_assert_held(&adapter->paging_lock);
	if (vmm_likely(!window->va))
		return VMM_OK;
	window->va->immediate = true;
	vmm_status status = take_window(window);
	if (status == VMM_OK)
		status = create_tables(window);
	window->va->immediate = false;
	if (status == VMM_OK) {
		send_root(window->va);
		return VMM_OK;
	}
	status = status == VMM_DEVICE_REMOVED ? status : VMM_NO_MEMORY;
	return vmm_refuse_reason(adapter->observe, status, 0, 0,
				 "PAG-26: the system paging process has no address space: no "
				 "memory for its page tables, or VirtualAddressBitCount is %u",
				 vmm_va_mmu(window->va)->caps.VirtualAddressBitCount);
}

void vmm_va_rewrite_system(struct vmm_memory *memory)
{
	struct vmm_paging_window *window = &memory->window;

	vmm_assert_held(&memory->adapter->paging_lock);
	window->va->immediate = true;
	vmm_va_tables_rewrite(window->va);
	window->va->immediate = false;
	/* The GPU may have kept translations, and flushes them at the next use of an address. */
	window->next = 0;
	window->mapped_end[0] = window->mapped_end[1] = window->side_bytes;
	send_root(window->va);
}

void vmm_va_free_system(struct vmm_memory *memory)
{
	struct vmm_va *va = memory->window.va;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!va)
		return;
	vmm_va_tables_free(va);
	vmm_va_space_free(va);
	memory->window.va = NULL;
}
