/* SPDX-License-Identifier: MIT */
/*
 * Registers and ports of a device whose accesses call functions. Drivers map registers as an
 * inaccessible range; the services find the range of a pointer and call its functions. The lists
 * are guarded by the memory lock, which is not held during a call.
 */
#include "nt/nt_internal.h"

#define PORT_FIRST 0xC000u
#define PORT_END   0x10000u

struct target {
	struct vmm_nt_registers registers; /* a copy */
	uint64_t offset;
};

/* ---- ranges ---- */

static void list_add(struct vmm_nt *nt, struct vmm_list *list, struct vmm_nt_registers *registers)
{
	nt_memory_lock(nt);
	vmm_list_push_back(list, &registers->link);
	nt_memory_unlock(nt);
	atomic_fetch_add(&nt->register_count, 1);
}

static void list_remove(struct vmm_nt *nt, struct vmm_nt_registers *registers)
{
	nt_memory_lock(nt);
	vmm_list_remove(&registers->link);
	nt_memory_unlock(nt);
	atomic_fetch_sub(&nt->register_count, 1);
}

vmm_status vmm_nt_registers_add(struct vmm_nt *nt, struct vmm_nt_registers *registers,
				const struct vmm_os_view *window, bool low)
{
	struct nt_phys_range range = {.size_bytes = registers->size_bytes,
				      .pointer = window->address,
				      .exact = window->address,
				      .exact_bytes = registers->size_bytes,
				      .trapped = true};
	vmm_status status = nt_phys_place_range(nt, &range, low);

	if (!vmm_ok(status))
		return status;
	registers->address = range.physical;
	registers->first = (uintptr_t)window->address;
	list_add(nt, &nt->registers, registers);
	return VMM_OK;
}

void vmm_nt_registers_remove(struct vmm_nt *nt, struct vmm_nt_registers *registers)
{
	list_remove(nt, registers);
	vmm_nt_phys_remove(nt, registers->address);
}

static struct vmm_nt_registers *find_locked(const struct vmm_nt *nt, struct vmm_list *list,
					    uint64_t first, uint64_t size)
	VMM_REQUIRES(nt_memory_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->memory);

	vmm_list_for_each (pos, list) {
		struct vmm_nt_registers *r = vmm_container_of(pos, struct vmm_nt_registers, link);

		if (nt_range_overlaps((const char *)(uintptr_t)r->first, r->size_bytes,
				      (const char *)(uintptr_t)first, size, false))
			return r;
	}
	return NULL;
}

vmm_status vmm_nt_ports_add(struct vmm_nt *nt, struct vmm_nt_registers *ports)
{
	const struct vmm_nt_registers *taken;
	uint64_t port = PORT_FIRST;

	nt_memory_lock(nt);
	while ((taken = find_locked(nt, &nt->ports, port, ports->size_bytes)) != NULL)
		port = vmm_align_up(taken->first + taken->size_bytes, ports->size_bytes);
	if (port + ports->size_bytes <= PORT_END) {
		ports->first = ports->address = port;
		vmm_list_push_back(&nt->ports, &ports->link);
	}
	nt_memory_unlock(nt);
	if (port + ports->size_bytes > PORT_END)
		return VMM_INSUFFICIENT_RESOURCES;
	atomic_fetch_add(&nt->register_count, 1);
	return VMM_OK;
}

void vmm_nt_ports_remove(struct vmm_nt *nt, struct vmm_nt_registers *ports)
{
	list_remove(nt, ports);
}

/* ---- accesses ---- */

enum found { FOUND, NOT_REGISTERS, REFUSED };

/* Finds the registers of an access. REFUSED: they exist, but the access is not valid. */
static enum found find(struct vmm_nt *nt, struct vmm_list *list, const char *service,
		       uint64_t address, uint32_t width, struct target *target)
{
	const struct vmm_nt_registers *registers;

	nt_memory_lock(nt);
	registers = find_locked(nt, list, address, width);
	if (registers)
		target->registers = *registers;
	nt_memory_unlock(nt);
	if (!registers)
		return NOT_REGISTERS;
	target->offset = address - target->registers.first;
	/* The range is aligned, so an aligned access is inside it. */
	if (address % width == 0)
		return FOUND;
	nt_violation(nt, "Q-422", service,
		     "%s of %u bytes at offset 0x%llx of a device's registers: the offset must be "
		     "a multiple of the width; reads as ones, writes nothing",
		     service, width, (unsigned long long)target->offset);
	return REFUSED;
}

/* Takes no lock if no device has registers. */
static enum found find_register(struct vmm_nt *nt, const char *service,
				const volatile void *address, uint32_t width, struct target *target)
{
	if (!atomic_load_explicit(&nt->register_count, memory_order_acquire))
		return NOT_REGISTERS;
	return find(nt, &nt->registers, service, (uintptr_t)address, width, target);
}

/* Returns false if the address is not a register, but memory. */
static bool register_read(const char *service, const volatile void *address, uint32_t width,
			  uint64_t *value)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct target target;
	enum found found = find_register(nt, service, address, width, &target);

	if (found == NOT_REGISTERS)
		return false;
	*value = UINT64_MAX;
	if (found == FOUND)
		*value = target.registers.read(target.registers.context, target.offset, width);
	nt_polled(nt);
	return true;
}

static bool register_write(const char *service, const volatile void *address, uint32_t width,
			   uint64_t value)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct target target;
	enum found found = find_register(nt, service, address, width, &target);

	if (found == FOUND)
		target.registers.write(target.registers.context, target.offset, width, value);
	return found != NOT_REGISTERS;
}

static void no_port(struct vmm_nt *nt, const char *service, uint64_t port)
{
	nt_violation(nt, "Q-422", service,
		     "%s of port 0x%llx: no device has it; reads as ones, writes nothing", service,
		     (unsigned long long)port);
}

static uint64_t port_read(const char *service, const void *port, uint32_t width)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t value = UINT64_MAX;
	struct target target;
	enum found found = find(nt, &nt->ports, service, (uintptr_t)port, width, &target);

	if (found == FOUND)
		value = target.registers.read(target.registers.context, target.offset, width);
	else if (found == NOT_REGISTERS)
		no_port(nt, service, (uintptr_t)port);
	nt_polled(nt);
	return value;
}

static void port_write(const char *service, const void *port, uint32_t width, uint64_t value)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct target target;
	enum found found = find(nt, &nt->ports, service, (uintptr_t)port, width, &target);

	if (found == FOUND)
		target.registers.write(target.registers.context, target.offset, width, value);
	else if (found == NOT_REGISTERS)
		no_port(nt, service, (uintptr_t)port);
}

/* ---- services ---- */

/* The fences are those of the services: accesses of a driver are never reordered with them. */
#define REGISTER(suffix, type)                                                                  \
	type READ_REGISTER_##suffix(volatile type *Register)                                    \
	{                                                                                       \
		uint64_t value;                                                                 \
                                                                                                \
		atomic_thread_fence(memory_order_seq_cst);                                      \
		if (!register_read("READ_REGISTER_" #suffix, Register, sizeof(type), &value))   \
			value = *Register;                                                      \
		return (type)value;                                                             \
	}                                                                                       \
	VOID WRITE_REGISTER_##suffix(volatile type *Register, type Value)                       \
	{                                                                                       \
		if (!register_write("WRITE_REGISTER_" #suffix, Register, sizeof(type), Value))  \
			*Register = Value;                                                      \
		atomic_thread_fence(memory_order_seq_cst);                                      \
	}                                                                                       \
	VOID READ_REGISTER_BUFFER_##suffix(volatile type *Register, type *Buffer, ULONG Count)  \
	{                                                                                       \
		for (ULONG i = 0; i < Count; i++)                                               \
			Buffer[i] = READ_REGISTER_##suffix(Register + i);                       \
	}                                                                                       \
	VOID WRITE_REGISTER_BUFFER_##suffix(volatile type *Register, type *Buffer, ULONG Count) \
	{                                                                                       \
		for (ULONG i = 0; i < Count; i++)                                               \
			WRITE_REGISTER_##suffix(Register + i, Buffer[i]);                       \
	}

REGISTER(UCHAR, UCHAR)
REGISTER(USHORT, USHORT)
REGISTER(ULONG, ULONG)
REGISTER(ULONG64, ULONG64)

#define PORT(suffix, type)                                                        \
	type READ_PORT_##suffix(type *Port)                                       \
	{                                                                         \
		return (type)port_read("READ_PORT_" #suffix, Port, sizeof(type)); \
	}                                                                         \
	VOID WRITE_PORT_##suffix(type *Port, type Value)                          \
	{                                                                         \
		port_write("WRITE_PORT_" #suffix, Port, sizeof(type), Value);     \
	}                                                                         \
	VOID READ_PORT_BUFFER_##suffix(type *Port, type *Buffer, ULONG Count)     \
	{                                                                         \
		for (ULONG i = 0; i < Count; i++)                                 \
			Buffer[i] = READ_PORT_##suffix(Port);                     \
	}                                                                         \
	VOID WRITE_PORT_BUFFER_##suffix(type *Port, type *Buffer, ULONG Count)    \
	{                                                                         \
		for (ULONG i = 0; i < Count; i++)                                 \
			WRITE_PORT_##suffix(Port, Buffer[i]);                     \
	}

PORT(UCHAR, UCHAR)
PORT(USHORT, USHORT)
PORT(ULONG, ULONG)
