/* SPDX-License-Identifier: MIT */
/*
 * Device models: what the miniport finds, and how its registers, ports, configuration space,
 * interrupts and power reach the model; what the model may do to memory.
 */
#include "port_fixture.h"
#include "support/test_device.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, port_fixture_teardown)
#define LINUX(name) cmocka_unit_test_setup_teardown(name, setup_linux, port_fixture_teardown)

static struct test_device d;
static struct routine {
	struct port_fixture *f;
	_Atomic uint32_t calls;
	uint32_t message[8], irql;
	uint32_t claim_from; /* calls before this one return FALSE */
	int lower;           /* lowers the line at this call; 0: never */
	int again;           /* has the model send its message again */
	int notify;
	int hold; /* waits in the first call until hold_word moves */
	_Atomic uint32_t hold_word;
} routine;

static BOOLEAN interrupt_routine(IN_CONST_PVOID adapter, ULONG message)
{
	uint32_t call = atomic_load(&routine.calls);

	assert_ptr_equal(adapter, routine.f->m);
	routine.irql = vmm_nt_irql(routine.f->nt);
	if (call < VMM_ARRAY_LENGTH(routine.message))
		routine.message[call] = message;
	if (routine.lower && call + 1 >= (uint32_t)routine.lower)
		d.services->lower_interrupt(d.services->handle, 0);
	if (routine.again)
		d.services->raise_interrupt(d.services->handle, message);
	if (routine.notify) {
		DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {
			.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED,
			.DmaCompleted = {.SubmissionFenceId = call + 1}};
		const DXGKRNL_INTERFACE *services = &routine.f->m->services;

		services->DxgkCbNotifyInterrupt(services->DeviceHandle, &data);
		services->DxgkCbQueueDpc(services->DeviceHandle);
	}
	if (routine.hold && !call)
		assert_int_equal(
			vmm_os_wait(routine.f->os, &routine.hold_word, 0, VMM_OS_FOREVER, NULL, 0),
			VMM_OK);
	/* Last, because a thread that waits for the call may raise the next interrupt then. */
	atomic_store(&routine.calls, call + 1);
	return call + 1 >= routine.claim_from;
}

static void prepare(struct port_fixture *f)
{
	test_device_init(&d);
	memset(&routine, 0, sizeof(routine));
	routine.f = f;
	f->m->settings.table.DxgkDdiInterruptRoutine = interrupt_routine;
	f->options.bar_count = 0;
	f->options.device_model = &d.model;
}

static int setup(void **state)
{
	int result = port_fixture_setup(state);

	prepare(*state);
	return result;
}

static int setup_linux(void **state)
{
	int result = port_fixture_setup_linux(state);

	prepare(*state);
	return result;
}

static void raise_line(uint32_t message)
{
	d.services->raise_interrupt(d.services->handle, message);
}

static const CM_PARTIAL_RESOURCE_LIST *resources(const struct port_fixture *f)
{
	return &f->m->device_info.TranslatedResourceList->List[0].PartialResourceList;
}

static void *map(struct port_fixture *f, uint32_t resource, BOOLEAN ports)
{
	const CM_PARTIAL_RESOURCE_DESCRIPTOR *r = &resources(f)->PartialDescriptors[resource];
	PVOID pointer = NULL;

	assert_int_equal(f->m->services.DxgkCbMapMemory(f->m->services.DeviceHandle,
							r->u.Memory.Start, r->u.Memory.Length,
							ports, FALSE, MmNonCached, &pointer),
			 STATUS_SUCCESS);
	assert_non_null(pointer);
	return pointer;
}

static void unmap(struct port_fixture *f, void *pointer)
{
	assert_int_equal(f->m->services.DxgkCbUnmapMemory(f->m->services.DeviceHandle, pointer),
			 STATUS_SUCCESS);
}

static void read_config(struct port_fixture *f, ULONG offset, ULONG length, void *bytes)
{
	ULONG done = 0;

	assert_int_equal(f->m->services.DxgkCbReadDeviceSpace(f->m->services.DeviceHandle,
							      DXGK_WHICHSPACE_CONFIG, bytes, offset,
							      length, &done),
			 STATUS_SUCCESS);
	assert_int_equal(done, length);
}

static void write_config(struct port_fixture *f, ULONG offset, ULONG length, void *bytes)
{
	ULONG done = 0;

	assert_int_equal(f->m->services.DxgkCbWriteDeviceSpace(f->m->services.DeviceHandle,
							       DXGK_WHICHSPACE_CONFIG, bytes,
							       offset, length, &done),
			 STATUS_SUCCESS);
	assert_int_equal(done, length);
}

/* ---- the description ---- */

static void refused(struct port_fixture *f, const char *text)
{
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	assert_null(f->port);
	if (!strstr(f->reason, "Q-420") || !strstr(f->reason, text))
		fail_msg("expected Q-420 with \"%s\": %s", text, f->reason);
	assert_int_equal(atomic_load(&d.created), 0);
	test_device_init(&d);
}

static void q_420_a_description_that_is_not_possible_is_refused(void **state)
{
	struct port_fixture *f = *state;

	d.model.version = 2;
	refused(f, "version 2");
	d.model.struct_size--;
	refused(f, "expected version 1");
	d.model.name = "Upper";
	refused(f, "name: expected");
	d.model.vendor_id = 0xFFFF;
	refused(f, "vendor_id");
	d.model.config_bytes = 512;
	refused(f, "config_bytes");
	d.image[0x41] = 0x40; /* a capability that is its own next one */
	refused(f, "capability list does not end");
	d.model.interrupt_messages = 33;
	refused(f, "interrupt_messages");
	d.model.reset = NULL;
	refused(f, "create, destroy and reset");
	d.model.bar_write = NULL;
	refused(f, "needs bar_read and bar_write");
	d.model.bar[2].size_bytes = 12288;
	refused(f, "BAR 2 of kind 1");
	d.model.bar[3].size_bytes = 512;
	refused(f, "BAR 3 of kind 3");
	d.model.bar[1].kind = VIDMM_BAR_PORTS; /* in the upper half of BAR 0 */
	d.model.bar[1].size_bytes = 8;
	refused(f, "BAR 0 of kind 2");
	d.model.bar[2].size_bytes = (uint64_t)1 << 30; /* with a register of 32 bits */
	refused(f, "BAR 2 of kind 1");
	f->options.bar_count = 1;
	refused(f, "bar_sizes");
}

static void q_405_a_limit_is_checked_with_a_model(void **state)
{
	struct port_fixture *f = *state;

	f->options.memory_limit_bytes = 65535;
	assert_int_equal(port_fixture_start(f), STATUS_INVALID_PARAMETER);
	assert_non_null(strstr(f->reason, "Q-405: memory_limit_bytes is 65535"));
}

static void q_420_create_may_refuse(void **state)
{
	struct port_fixture *f = *state;

	d.create_status = STATUS_NOT_SUPPORTED;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "Q-420: create of device model test-device failed"));
	assert_int_equal(atomic_load(&d.destroyed), 0);
	d.create_status = 0;
	f->options.physical_adapters = 2;
	assert_int_equal(port_fixture_start(f), STATUS_NOT_SUPPORTED);
	f->options.physical_adapters = 1;
	port_fixture_run(f);
	port_fixture_stop(f);
	assert_int_equal(atomic_load(&d.created), 1);
	assert_int_equal(atomic_load(&d.destroyed), 1);
	assert_int_equal(atomic_load(&d.resets), 1);
}

static void the_resources_are_those_of_the_model(void **state)
{
	struct port_fixture *f = *state;
	const CM_PARTIAL_RESOURCE_DESCRIPTOR *r;
	uint8_t config[64];
	uint32_t bar[6];

	port_fixture_run(f);
	r = resources(f)->PartialDescriptors;
	assert_int_equal(resources(f)->Count, 5);
	assert_int_equal(r[0].Type, CmResourceTypeMemory);
	assert_int_equal(r[0].u.Memory.Length, 16 << 20);
	assert_true(r[0].Flags & CM_RESOURCE_MEMORY_PREFETCHABLE);
	assert_int_equal(r[1].Type, CmResourceTypeMemory);
	assert_int_equal(r[1].u.Memory.Length, 65536);
	assert_false(r[1].Flags & CM_RESOURCE_MEMORY_PREFETCHABLE);
	assert_true(r[1].u.Memory.Start.QuadPart < (LONGLONG)4 << 30);
	assert_int_equal(r[1].u.Memory.Start.QuadPart % 65536, 0);
	assert_int_equal(r[2].Type, CmResourceTypePort);
	assert_int_equal(r[2].u.Port.Length, TEST_DEVICE_PORT_COUNT);
	assert_int_equal(r[3].u.Memory.Length, 4096);
	assert_int_equal(r[4].Type, CmResourceTypeInterrupt);
	assert_int_equal(r[4].Flags, CM_RESOURCE_INTERRUPT_LEVEL_SENSITIVE);
	read_config(f, 0, sizeof(config), config);
	assert_memory_equal(config, "\x34\x12\x78\x56\x07\x00\x10\x00\x03\x00\x80\x03", 12);
	assert_memory_equal(config + 0x2C, "\xF4\x1A\x00\x11", 4);
	assert_int_equal(config[0x34], 0x40);
	memcpy(bar, config + 0x10, sizeof(bar));
	assert_int_equal(bar[0] & 15, 0xC);
	assert_int_equal((uint64_t)bar[1] << 32 | (bar[0] & ~15u), r[0].u.Memory.Start.QuadPart);
	assert_int_equal(bar[2], r[1].u.Memory.Start.QuadPart);
	assert_int_equal(bar[3], r[2].u.Port.Start.QuadPart | 1);
	assert_int_equal((uint64_t)bar[5] << 32 | (bar[4] & ~15u), r[3].u.Memory.Start.QuadPart);
}

static void each_message_is_a_resource(void **state)
{
	struct port_fixture *f = *state;
	const CM_PARTIAL_RESOURCE_DESCRIPTOR *r;

	d.model.interrupt_messages = 3;
	port_fixture_run(f);
	assert_int_equal(resources(f)->Count, 7);
	r = &resources(f)->PartialDescriptors[4];
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(r[i].Type, CmResourceTypeInterrupt);
		assert_int_equal(r[i].Flags, 3); /* latched, message */
		assert_int_equal(r[i].u.MessageInterrupt.Translated.Vector, 0x50 + i);
	}
}

/* ---- registers and ports (Q-422) ---- */

static void q_422_registers_reach_the_model(void **state)
{
	struct port_fixture *f = *state;
	uint8_t *registers;
	ULONG words[3] = {1, 2, 3};
	UCHAR bytes[4];

	port_fixture_run(f);
	registers = map(f, 1, FALSE);
	WRITE_REGISTER_ULONG((volatile ULONG *)(registers + 0x10), 0x11223344);
	assert_int_equal(d.accesses, 1);
	assert_int_equal(d.access[0].bar, TEST_DEVICE_REGISTERS);
	assert_int_equal(d.access[0].offset, 0x10);
	assert_int_equal(d.access[0].width, 4);
	assert_int_equal(d.access[0].value, 0x11223344);
	assert_int_equal(READ_REGISTER_UCHAR(registers + 0x11), 0x33);
	assert_int_equal(READ_REGISTER_USHORT((volatile USHORT *)(registers + 0x12)), 0x1122);
	WRITE_REGISTER_ULONG64((volatile ULONG64 *)(registers + 0x18), 0x0102030405060708u);
	assert_int_equal(d.access[3].width, 8);
	assert_true(READ_REGISTER_ULONG64((volatile ULONG64 *)(registers + 0x18)) ==
		    0x0102030405060708u);
	/* The buffer forms step through registers. */
	WRITE_REGISTER_BUFFER_ULONG((volatile ULONG *)(registers + 0x20), words, 3);
	READ_REGISTER_BUFFER_UCHAR(registers + 0x24, bytes, 4);
	assert_memory_equal(bytes, "\x02\x00\x00\x00", 4);
	assert_int_equal(d.access[7].offset, 0x28);
	unmap(f, registers);
	assert_nothing_found(f);
}

static void q_422_ports_reach_the_model(void **state)
{
	struct port_fixture *f = *state;
	ULONG words[3] = {1, 2, 3};
	UCHAR *ports;

	port_fixture_run(f);
	ports = map(f, 2, TRUE);
	WRITE_PORT_UCHAR(ports + 5, 0xA5);
	assert_int_equal(d.access[0].bar, TEST_DEVICE_PORTS);
	assert_int_equal(d.access[0].offset, 5);
	assert_int_equal(READ_PORT_ULONG((PULONG)(ports + 4)), 0xA500);
	/* The buffer forms access one port. */
	WRITE_PORT_BUFFER_ULONG((PULONG)(ports + 8), words, 3);
	assert_int_equal(d.access[4].offset, 8);
	assert_int_equal(d.access[4].value, 3);
	assert_nothing_found(f);
	unmap(f, ports);
	assert_int_equal(READ_PORT_USHORT((PUSHORT)(ULONG_PTR)0x60), 0xFFFF);
	assert_non_null(strstr(f->violation, "Q-422: READ_PORT_USHORT of port 0x60"));
	f->violations = 0;
}

static void q_422_a_bad_access_of_registers_is_reported(void **state)
{
	struct port_fixture *f = *state;
	uint8_t *registers;
	PVOID pointer;
	PHYSICAL_ADDRESS address;

	port_fixture_run(f);
	registers = map(f, 1, FALSE);
	assert_int_equal(READ_REGISTER_ULONG((volatile ULONG *)(void *)(registers + 2)),
			 0xFFFFFFFF);
	assert_non_null(
		strstr(f->violation, "Q-422: READ_REGISTER_ULONG of 4 bytes at offset 0x2"));
	WRITE_REGISTER_USHORT((volatile USHORT *)(void *)(registers + 65535), 1);
	assert_int_equal(f->violations, 2);
	assert_int_equal(d.accesses, 0);
	f->violations = 0;
	unmap(f, registers);
	address = resources(f)->PartialDescriptors[1].u.Memory.Start;
	assert_int_equal(f->m->services.DxgkCbMapMemory(f->m->services.DeviceHandle, address, 65537,
							FALSE, FALSE, MmNonCached, &pointer),
			 STATUS_INVALID_PARAMETER);
	assert_finding(f, "NT-08", "65537 bytes");
}

/*
 * Starts the port in a child that accesses a register through the pointer. Returns the child's
 * status, and what it wrote to stderr.
 */
static int access_in_child(struct port_fixture *f, char *text, size_t size)
{
	int ends[2], status;
	pid_t child;
	ssize_t length;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL); /* cmocka would continue with the next test */
		dup2(ends[1], STDERR_FILENO);
		port_fixture_run(f);
		*(volatile ULONG *)((char *)map(f, 1, FALSE) + 0x40) = 1;
		_exit(0);
	}
	close(ends[1]);
	for (size_t at = 0;; at += (size_t)length) {
		length = read(ends[0], text + at, size - 1 - at);
		text[at + (length > 0 ? (size_t)length : 0)] = '\0';
		if (length <= 0)
			break;
	}
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void q_422_an_access_through_the_pointer_is_explained(void **state)
{
	char text[1024];
	int status = access_in_child(*state, text, sizeof(text));

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	if (!strstr(text, "Q-422: registers of BAR 2 of device test-device were accessed") ||
	    !strstr(text, "(offset 0x40)"))
		fail_msg("stderr: %s", text);
}

static void registers_in_memory_are_memory(void **state)
{
	struct port_fixture *f = *state;
	ULONG word = 7;

	port_fixture_run(f);
	WRITE_REGISTER_ULONG(&word, 9);
	assert_int_equal(word, 9);
	WRITE_REGISTER_UCHAR((volatile UCHAR *)f->m->bar + 3, 5);
	assert_int_equal(READ_REGISTER_ULONG((volatile ULONG *)f->m->bar), 5u << 24);
	assert_int_equal(d.accesses, 0);
	assert_int_equal(((uint8_t *)d.services->bar_memory(d.services->handle, 0))[3], 5);
	assert_null(d.services->bar_memory(d.services->handle, 2));
}

/* ---- configuration space (Q-429) ---- */

static uint32_t config_read(void *device, uint32_t offset, uint32_t width)
{
	struct test_device *t = device;

	t->access[t->accesses++] = (struct test_device_access){100, width, offset, 0, 0};
	return 0xA0B0C000u | offset;
}

static void config_write(void *device, uint32_t offset, uint32_t width, uint32_t value)
{
	struct test_device *t = device;

	t->access[t->accesses++] = (struct test_device_access){100, width, offset, value, 1};
}

static void q_429_configuration_space_reaches_the_model(void **state)
{
	struct port_fixture *f = *state;
	uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	ULONG done;

	d.model.config_read = config_read;
	d.model.config_write = config_write;
	port_fixture_run(f);
	/* 3 bytes of the header, and 5 behind it, in aligned pieces */
	read_config(f, 0x3D, 8, bytes);
	assert_int_equal(d.accesses, 2);
	assert_int_equal(d.access[0].offset, 0x40);
	assert_int_equal(d.access[0].width, 4);
	assert_int_equal(d.access[1].width, 1);
	assert_memory_equal(bytes, "\x01\x00\x00\x40\xC0\xB0\xA0\x44", 8);
	write_config(f, 0x43, 7, "\x01\x02\x03\x04\x05\x06\x07");
	assert_int_equal(d.accesses, 5);
	assert_int_equal(d.access[2].width, 1);
	assert_int_equal(d.access[3].value, 0x05040302);
	assert_int_equal(d.access[4].width, 2);
	assert_int_equal(f->m->services.DxgkCbReadDeviceSpace(f->m->services.DeviceHandle,
							      DXGK_WHICHSPACE_CONFIG, bytes, 4094,
							      8, &done),
			 STATUS_SUCCESS);
	assert_int_equal(done, 2);
}

static void q_429_without_functions_the_image_is_kept(void **state)
{
	struct port_fixture *f = *state;
	uint8_t bytes[4];

	port_fixture_run(f);
	read_config(f, 0x40, 4, bytes);
	assert_memory_equal(bytes, "\x09\x00\x10\x01", 4);
	write_config(f, 0x200, 4, "abcd");
	read_config(f, 0x200, 4, bytes);
	assert_memory_equal(bytes, "abcd", 4);
	write_config(f, 0, 4, "abcd"); /* the header is read-only */
	read_config(f, 0, 4, bytes);
	assert_memory_equal(bytes, "\x34\x12\x78\x56", 4);
}

/* ---- interrupts (Q-423, Q-424) ---- */

static void q_423_a_line_is_delivered_until_it_is_lowered(void **state)
{
	struct port_fixture *f = *state;

	routine.lower = 3;
	routine.notify = 1;
	port_fixture_run(f);
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 3);
	assert_int_equal(routine.irql, VMM_NT_DEVICE);
	assert_int_equal(routine.message[0], 0);
	assert_int_equal(f->interrupts, 3);
	assert_int_equal(f->dpcs, 3);
	assert_int_equal(f->dpc_irql, VMM_NT_DISPATCH);
	assert_nothing_found(f);
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 4);
}

static void q_423_an_unclaimed_line_is_reported_and_left(void **state)
{
	struct port_fixture *f = *state;

	routine.claim_from = 100;
	port_fixture_run(f);
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 1);
	assert_finding(f, "Q-423", "returned FALSE for line 0");
	assert_int_equal(f->findings, 1);
	raise_line(0); /* still raised */
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 1);
	/* A new interrupt is delivered again. */
	d.services->lower_interrupt(d.services->handle, 0);
	routine.claim_from = 0;
	routine.lower = 1;
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 2);
	assert_int_equal(f->findings, 1);
}

static void q_423_a_line_that_went_down_needs_no_claim(void **state)
{
	struct port_fixture *f = *state;

	routine.claim_from = 100;
	routine.lower = 1;
	port_fixture_run(f);
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 1);
	assert_nothing_found(f);
}

/* The new interrupt comes after the routine has looked, and before its result is judged. */
static void q_423_a_line_raised_anew_during_the_call_is_delivered(void **state)
{
	struct port_fixture *f = *state;

	routine.hold = 1;
	routine.claim_from = 2;
	routine.lower = 2;
	port_fixture_run(f);
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 0);
	d.services->lower_interrupt(d.services->handle, 0);
	raise_line(0);
	atomic_store(&routine.hold_word, 1);
	vmm_os_wake(f->os, &routine.hold_word, 1);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 2);
	assert_nothing_found(f);
}

static void q_423_messages_are_delivered_by_number(void **state)
{
	struct port_fixture *f = *state;

	d.model.interrupt_messages = 4;
	routine.claim_from = 4; /* the fourth call */
	port_fixture_run(f);
	raise_line(2);
	raise_line(2);
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 2);
	assert_int_equal(routine.message[0] + routine.message[1], 2);
	assert_finding(f, "Q-423", "returned FALSE for message");
	assert_int_equal(f->findings, 2);
	raise_line(2); /* reported already */
	vmm_os_settle(f->os);
	assert_int_equal(f->findings, 2);
	raise_line(3);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 4);
	assert_int_equal(f->findings, 2);
	raise_line(4);
	assert_finding(f, "Q-423", "raise_interrupt of interrupt 4, the device has 4");
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 4);
}

static void q_424_a_storm_of_a_line_ends(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f); /* the routine claims, and lowers nothing */
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 10000);
	assert_finding(f, "Q-424", "line 0 was still or again raised after each of 10000 calls");
	assert_int_equal(f->findings, 1);
	d.services->lower_interrupt(d.services->handle, 0);
	routine.lower = 1;
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 10001);
	assert_int_equal(f->findings, 1);
}

static void q_424_a_storm_of_a_message_ends(void **state)
{
	struct port_fixture *f = *state;

	d.model.interrupt_messages = 2;
	routine.again = 1;
	port_fixture_run(f);
	raise_line(1);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 10000);
	assert_finding(f, "Q-424", "message 1");
	routine.again = 0;
	raise_line(1);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 10001);
	assert_int_equal(f->findings, 1);
}

static BOOLEAN current_irql(PVOID context)
{
	(void)context;
	return KeGetCurrentIrql();
}

static void a_synchronized_routine_names_an_existing_message(void **state)
{
	struct port_fixture *f = *state;
	BOOLEAN result;

	d.model.interrupt_messages = 2;
	port_fixture_run(f);
	assert_int_equal(f->m->services.DxgkCbSynchronizeExecution(f->m->services.DeviceHandle,
								   current_irql, NULL, 1, &result),
			 STATUS_SUCCESS);
	assert_int_equal(result, VMM_NT_DEVICE);
	assert_int_equal(f->m->services.DxgkCbSynchronizeExecution(f->m->services.DeviceHandle,
								   current_irql, NULL, 2, &result),
			 STATUS_INVALID_PARAMETER);
	assert_finding(f, "SUB-13", "message 2");
}

static void raise_in_stop_device(void *context, struct scripted_miniport *m,
				 struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == VIDMM_DDI_REMOVE_DEVICE)
		raise_line(0);
}

static void no_interrupt_is_delivered_after_the_stop(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	f->m->hook = raise_in_stop_device;
	port_fixture_stop(f);
	assert_int_equal(atomic_load(&routine.calls), 0);
	assert_int_equal(atomic_load(&d.resets), 1);
}

/* ---- DMA (Q-425) ---- */

static void q_425_dma_reaches_system_memory_and_bars(void **state)
{
	struct port_fixture *f = *state;
	const struct vidmm_device_services *s;
	struct vmm_os_memory memory;
	uint64_t first = (uint64_t)1 << 44, bar;
	char bytes[8192];

	port_fixture_run(f);
	s = d.services;
	assert_int_equal(vmm_os_memory_create(f->os, "pages", 8192, &memory), VMM_OK);
	/* Two adjacent pages of the platform, in the reverse order of the memory. */
	assert_int_equal(vmm_nt_phys_add(f->nt, first, &memory, 4096, 4096), VMM_OK);
	assert_int_equal(vmm_nt_phys_add(f->nt, first + 4096, &memory, 0, 4096), VMM_OK);
	memset(bytes, 0x5A, sizeof(bytes));
	assert_int_equal(s->dma_write(s->handle, first + 4000, bytes, 200), 0);
	assert_int_equal(memory.base[4096 + 4000], 0x5A);
	assert_int_equal(memory.base[103], 0x5A);
	assert_int_equal(memory.base[104], 0);
	memory.base[0] = 1;
	assert_int_equal(s->dma_read(s->handle, first, bytes, sizeof(bytes)), 0);
	assert_int_equal(bytes[4096], 1);
	bar = (uint64_t)resources(f)->PartialDescriptors[0].u.Memory.Start.QuadPart;
	assert_int_equal(s->dma_write(s->handle, bar + 16, "abc", 3), 0);
	assert_memory_equal((char *)f->m->bar + 16, "abc", 3);
	assert_int_equal(s->dma_read(s->handle, 1, NULL, 0), 0);
	assert_nothing_found(f);
	vmm_nt_phys_remove(f->nt, first);
	vmm_nt_phys_remove(f->nt, first + 4096);
	vmm_os_memory_destroy(&memory);
}

static void q_425_dma_to_no_memory_is_refused(void **state)
{
	struct port_fixture *f = *state;
	const struct vidmm_device_services *s;
	uint64_t bar, registers;
	char text[96], bytes[64] = {1};

	port_fixture_run(f);
	s = d.services;
	bar = (uint64_t)resources(f)->PartialDescriptors[0].u.Memory.Start.QuadPart;
	registers = (uint64_t)resources(f)->PartialDescriptors[1].u.Memory.Start.QuadPart;
	assert_int_equal(s->dma_write(s->handle, bar + (16 << 20) - 32, bytes, 64),
			 STATUS_INVALID_PARAMETER);
	snprintf(text, sizeof(text), "there is no memory at 0x%llx",
		 (unsigned long long)bar + (16 << 20));
	assert_finding(f, "Q-425", text);
	assert_int_equal(f->m->bar[(16 << 20) - 32], 0); /* nothing was written */
	assert_int_equal(s->dma_read(s->handle, registers, bytes, 4), STATUS_INVALID_PARAMETER);
	assert_int_equal(s->dma_read(s->handle, UINT64_MAX - 1, bytes, 64),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(s->dma_write(s->handle, 0, bytes, 1), STATUS_INVALID_PARAMETER);
	assert_int_equal(f->findings, 4);
	assert_int_equal(bytes[0], 1);
}

/* ---- timers (Q-426) ---- */

static void q_426_timers_come_in_the_order_of_their_times(void **state)
{
	struct port_fixture *f = *state;
	const struct vidmm_device_services *s;
	uint64_t now;

	port_fixture_run(f);
	s = d.services;
	now = s->now_ns(s->handle);
	s->schedule(s->handle, 3, now + 5000);
	s->schedule(s->handle, 1, now + 2000);
	s->schedule(s->handle, 15, now + 2000);
	s->schedule(s->handle, 2, now + 1000);
	s->schedule(s->handle, 2, VIDMM_DEVICE_NEVER);
	s->schedule(s->handle, 4, now + 9000);
	s->schedule(s->handle, 4, now + 3000); /* replaces the time */
	vmm_os_sleep_until(f->os, now + 20000);
	assert_int_equal(d.timers, 4);
	assert_int_equal(d.timer[0], 1);
	assert_int_equal(d.timer_ns[0], now + 2000);
	assert_int_equal(d.timer[1], 15);
	assert_int_equal(d.timer[2], 4);
	assert_int_equal(d.timer[3], 3);
	assert_int_equal(d.timer_ns[3], now + 5000);
	s->schedule(s->handle, 16, now);
	assert_finding(f, "Q-426", "schedule of timer 16");
	s->schedule(s->handle, 0, 0); /* a time that has passed */
	vmm_os_settle(f->os);
	assert_int_equal(d.timers, 5);
	s->schedule(s->handle, 0, now + 1000000); /* the stop cancels it */
}

static void a_loop_that_polls_a_register_lets_time_pass(void **state)
{
	struct port_fixture *f = *state;
	uint8_t *registers;
	uint64_t polls = 0;

	port_fixture_run(f);
	registers = map(f, 1, FALSE);
	d.services->schedule(d.services->handle, 0,
			     d.services->now_ns(d.services->handle) + 100000);
	while (!d.timers && polls++ < 1000000)
		READ_REGISTER_ULONG((volatile ULONG *)registers);
	assert_int_equal(d.timers, 1);
	unmap(f, registers);
}

/* ---- power (Q-427) ---- */

static void check_power(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	uint32_t *power_seen = context;

	(void)m;
	if (call->ddi == VIDMM_DDI_SET_POWER_STATE)
		*power_seen = d.power;
}

static void q_427_outside_d0_the_device_does_not_answer(void **state)
{
	struct port_fixture *f = *state;
	const struct vidmm_device_services *s;
	uint32_t seen = 99;
	uint8_t *registers;
	char byte;

	port_fixture_run(f);
	s = d.services;
	f->m->hook = check_power;
	f->m->hook_context = &seen;
	registers = map(f, 1, FALSE);
	raise_line(0); /* not delivered yet: no thread has run */
	vmm_port_set_power_state(f->port, PowerDeviceD3, PowerActionSleep);
	assert_int_equal(seen, 0); /* the miniport came first */
	assert_int_equal(d.power, PowerDeviceD3);
	vmm_os_settle(f->os);
	assert_true(atomic_load(&routine.calls) <= 1);
	assert_int_equal(READ_REGISTER_ULONG((volatile ULONG *)registers), 0xFFFFFFFF);
	assert_finding(f, "Q-427", "a register was read while the device was in D3");
	WRITE_REGISTER_ULONG((volatile ULONG *)registers, 1);
	assert_int_equal(s->dma_read(s->handle, 0, &byte, 1), STATUS_INVALID_DEVICE_STATE);
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(f->findings, 1); /* once for each stay */
	assert_int_equal(d.accesses, 0);
	vmm_port_set_power_state(f->port, PowerDeviceD0, PowerActionNone);
	assert_int_equal(seen, PowerDeviceD0); /* the device came first */
	WRITE_REGISTER_ULONG((volatile ULONG *)registers, 1);
	assert_int_equal(d.accesses, 1);
	unmap(f, registers);
}

static void q_427_a_removed_device_does_not_answer(void **state)
{
	struct port_fixture *f = *state;
	uint8_t *registers, config[8];

	port_fixture_run(f);
	registers = map(f, 1, FALSE);
	raise_line(0);
	/* The miniport has no support for removals. */
	assert_int_equal(vmm_port_notify_removal(f->port, DxgkRemovalPnPNotify),
			 STATUS_NOT_SUPPORTED);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 0);
	assert_int_equal(READ_REGISTER_UCHAR(registers), 0xFF);
	WRITE_REGISTER_UCHAR(registers, 1);
	raise_line(0);
	vmm_os_settle(f->os);
	assert_int_equal(atomic_load(&routine.calls), 0);
	read_config(f, 0x3C, 8, config);
	assert_memory_equal(config, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
	write_config(f, 0x40, 4, "abcd");
	assert_int_equal(d.accesses, 0);
	assert_nothing_found(f);
	unmap(f, registers);
}

/* ---- real threads ---- */

static void raise_at_doorbell(struct test_device *device, uint64_t offset, uint64_t value)
{
	(void)value;
	if (offset == 0)
		device->services->raise_interrupt(device->services->handle, 0);
	if (offset == 8)
		device->services->lower_interrupt(device->services->handle, 0);
}

static void on_real_threads_each_doorbell_is_answered(void **state)
{
	struct port_fixture *f = *state;
	uint8_t *registers;

	d.on_write = raise_at_doorbell;
	routine.lower = 1;
	port_fixture_run(f);
	registers = map(f, 1, FALSE);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t before = atomic_load(&routine.calls);

		WRITE_REGISTER_ULONG((volatile ULONG *)registers, i);
		while (atomic_load(&routine.calls) == before)
			vmm_os_yield(f->os);
	}
	unmap(f, registers);
	assert_nothing_found(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(q_420_a_description_that_is_not_possible_is_refused),
		TEST(q_405_a_limit_is_checked_with_a_model),
		TEST(q_420_create_may_refuse),
		TEST(the_resources_are_those_of_the_model),
		TEST(each_message_is_a_resource),
		TEST(q_422_registers_reach_the_model),
		TEST(q_422_ports_reach_the_model),
		TEST(q_422_a_bad_access_of_registers_is_reported),
		TEST(q_422_an_access_through_the_pointer_is_explained),
		TEST(registers_in_memory_are_memory),
		TEST(q_429_configuration_space_reaches_the_model),
		TEST(q_429_without_functions_the_image_is_kept),
		TEST(q_423_a_line_is_delivered_until_it_is_lowered),
		TEST(q_423_an_unclaimed_line_is_reported_and_left),
		TEST(q_423_a_line_that_went_down_needs_no_claim),
		TEST(q_423_a_line_raised_anew_during_the_call_is_delivered),
		TEST(q_423_messages_are_delivered_by_number),
		TEST(q_424_a_storm_of_a_line_ends),
		TEST(q_424_a_storm_of_a_message_ends),
		TEST(a_synchronized_routine_names_an_existing_message),
		TEST(no_interrupt_is_delivered_after_the_stop),
		TEST(q_425_dma_reaches_system_memory_and_bars),
		TEST(q_425_dma_to_no_memory_is_refused),
		TEST(q_426_timers_come_in_the_order_of_their_times),
		TEST(a_loop_that_polls_a_register_lets_time_pass),
		TEST(q_427_outside_d0_the_device_does_not_answer),
		TEST(q_427_a_removed_device_does_not_answer),
		LINUX(on_real_threads_each_doorbell_is_answered),
	};

	return cmocka_run_group_tests_name("port_device", tests, NULL, NULL);
}
