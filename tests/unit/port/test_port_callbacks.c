/* SPDX-License-Identifier: MIT */
/*
 * DXGKRNL_INTERFACE: device description and memory, handles, interrupts and DPCs, unsupported
 * services.
 */
#include "port_fixture.h"

#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, port_fixture_setup, port_fixture_teardown)

static DXGKRNL_INTERFACE *services(struct port_fixture *f)
{
	return &f->m->services;
}

static HANDLE handle(struct port_fixture *f)
{
	return f->m->services.DeviceHandle;
}

/* ---- the device ---- */

static void device_information_describes_the_resources(void **state)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES, (uint64_t)5 << 30};
	struct port_fixture *f = *state;
	const CM_PARTIAL_RESOURCE_LIST *list;

	f->options.bar_sizes = bars;
	f->options.bar_count = 2;
	f->options.system_memory_bytes = (uint64_t)1 << 30;
	port_fixture_run(f);
	assert_ptr_equal(f->m->device_info.PhysicalDeviceObject, f->m->device_object);
	assert_ptr_equal(f->m->device_info.MiniportDeviceContext, f->m);
	assert_int_equal(f->m->device_info.SystemMemorySize.QuadPart, 1 << 30);
	assert_int_equal(f->m->device_info.AgpApertureSize, 0);
	assert_int_equal(f->m->device_info.TranslatedResourceList->Count, 1);
	list = &f->m->device_info.TranslatedResourceList->List[0].PartialResourceList;
	assert_int_equal(list->Count, 3);
	assert_int_equal(list->PartialDescriptors[0].Type, CmResourceTypeMemory);
	assert_int_equal(list->PartialDescriptors[0].u.Memory.Length, SCRIPTED_BAR_BYTES);
	assert_ptr_equal(
		vmm_nt_phys_lookup(
			f->nt, (uint64_t)list->PartialDescriptors[0].u.Memory.Start.QuadPart, 4096),
		f->m->bar);
	assert_int_equal(list->PartialDescriptors[1].Type, CmResourceTypeMemoryLarge);
	assert_int_equal(list->PartialDescriptors[1].u.Memory.Length, ((uint64_t)5 << 30) >> 8);
	assert_int_equal(list->PartialDescriptors[2].Type, CmResourceTypeInterrupt);
}

static NTSTATUS read_number(struct port_fixture *f, const char *ascii, ULONG *value)
{
	struct {
		KEY_VALUE_PARTIAL_INFORMATION head;
		char more[16];
	} answer;
	uint16_t name_text[64] = {0};
	UNICODE_STRING name = {.Length = (USHORT)(2 * strlen(ascii)),
			       .MaximumLength = sizeof(name_text),
			       .Buffer = (PWSTR)(void *)name_text};
	OBJECT_ATTRIBUTES attributes;
	NTSTATUS status;
	ULONG length;
	HANDLE key;

	for (size_t i = 0; ascii[i]; i++)
		name_text[i] = (uint16_t)ascii[i];
	InitializeObjectAttributes(&attributes, &f->m->device_info.DeviceRegistryPath,
				   OBJ_KERNEL_HANDLE, NULL, NULL);
	assert_int_equal(ZwOpenKey(&key, KEY_READ, &attributes), STATUS_SUCCESS);
	status = ZwQueryValueKey(key, &name, KeyValuePartialInformation, &answer, sizeof(answer),
				 &length);
	if (status == STATUS_SUCCESS)
		memcpy(value, answer.head.Data, sizeof(*value));
	ZwClose(key);
	return status;
}

static void registry_values_are_under_the_devices_key(void **state)
{
	static const struct vmm_port_registry_value registry[] = {{"ApertureSize", 4096},
								  {"Ranges", 7}};
	struct port_fixture *f = *state;
	ULONG value = 0;

	f->options.registry = registry;
	f->options.registry_count = 2;
	port_fixture_run(f);
	assert_int_equal(read_number(f, "Ranges", &value), STATUS_SUCCESS);
	assert_int_equal(value, 7);
	assert_int_equal(read_number(f, "Absent", &value), STATUS_OBJECT_NAME_NOT_FOUND);
}

static void mapping_the_bar_succeeds(void **state)
{
	struct port_fixture *f = *state;
	PHYSICAL_ADDRESS address;
	PVOID pointer = NULL;

	port_fixture_run(f);
	address.QuadPart = (LONGLONG)f->m->bar_physical + 4096;
	assert_int_equal(services(f)->DxgkCbMapMemory(handle(f), address, 8192, FALSE, FALSE,
						      MmNonCached, &pointer),
			 STATUS_SUCCESS);
	assert_ptr_equal(pointer, f->m->bar + 4096);
	assert_int_equal(services(f)->DxgkCbUnmapMemory(handle(f), pointer), STATUS_SUCCESS);
	assert_nothing_found(f);
	assert_int_equal(services(f)->DxgkCbUnmapMemory(handle(f), pointer),
			 STATUS_INVALID_PARAMETER);
	assert_finding(f, "NT-08", "DxgkCbUnmapMemory");
}

static void mapping_outside_the_bar_is_refused(void **state)
{
	struct port_fixture *f = *state;
	PHYSICAL_ADDRESS address;
	PVOID pointer = f;

	port_fixture_run(f);
	address.QuadPart = (LONGLONG)(f->m->bar_physical + SCRIPTED_BAR_BYTES - 4096);
	assert_int_equal(services(f)->DxgkCbMapMemory(handle(f), address, 4097, FALSE, FALSE,
						      MmCached, &pointer),
			 STATUS_INVALID_PARAMETER);
	assert_ptr_equal(pointer, f);
	assert_finding(f, "NT-08", "DxgkCbMapMemory of 4097 bytes");
	assert_int_equal(services(f)->DxgkCbMapMemory(handle(f), address, 4096, TRUE, FALSE,
						      MmCached, &pointer),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(services(f)->DxgkCbMapMemory(handle(f), address, 4096, FALSE, TRUE,
						      MmCached, &pointer),
			 STATUS_NOT_SUPPORTED);
}

static void a_leaked_bar_mapping_is_reported(void **state)
{
	struct port_fixture *f = *state;
	PHYSICAL_ADDRESS address;
	PVOID pointer;

	port_fixture_run(f);
	address.QuadPart = (LONGLONG)f->m->bar_physical;
	assert_int_equal(services(f)->DxgkCbMapMemory(handle(f), address, 1, FALSE, FALSE, MmCached,
						      &pointer),
			 STATUS_SUCCESS);
	port_fixture_stop(f);
	assert_finding(f, "NT-06", "1 mappings");
}

static void configuration_space_is_read_and_written(void **state)
{
	struct port_fixture *f = *state;
	uint8_t bytes[256], word[4] = {1, 2, 3, 4};
	uint64_t bar;
	ULONG done = 0;

	port_fixture_run(f);
	assert_int_equal(services(f)->DxgkCbReadDeviceSpace(handle(f), DXGK_WHICHSPACE_CONFIG,
							    bytes, 0, 256, &done),
			 STATUS_SUCCESS);
	assert_int_equal(done, 256);
	memcpy(&bar, bytes + 0x10, sizeof(bar));
	assert_int_equal(bar & ~(uint64_t)0xF, f->m->bar_physical);
	/*
	 * Header fields keep their values, the device's own registers can be written; accesses are
	 * cut at the end.
	 */
	assert_int_equal(services(f)->DxgkCbWriteDeviceSpace(handle(f), DXGK_WHICHSPACE_CONFIG,
							     word, 0, 4, &done),
			 STATUS_SUCCESS);
	assert_int_equal(services(f)->DxgkCbWriteDeviceSpace(handle(f), DXGK_WHICHSPACE_CONFIG,
							     word, 0xFE, 4, &done),
			 STATUS_SUCCESS);
	assert_int_equal(done, 2);
	assert_int_equal(services(f)->DxgkCbReadDeviceSpace(handle(f), DXGK_WHICHSPACE_CONFIG,
							    bytes + 4, 0, 4, &done),
			 STATUS_SUCCESS);
	assert_memory_equal(bytes, bytes + 4, 4);
	assert_int_equal(services(f)->DxgkCbReadDeviceSpace(handle(f), DXGK_WHICHSPACE_CONFIG,
							    bytes, 0xFC, 9, &done),
			 STATUS_SUCCESS);
	assert_int_equal(done, 4);
	assert_int_equal(bytes[2], 1);
	assert_int_equal(bytes[3], 2);
	assert_int_equal(services(f)->DxgkCbReadDeviceSpace(handle(f), DXGK_WHICHSPACE_ROM, bytes,
							    0, 1, &done),
			 STATUS_NOT_SUPPORTED);
}

static void other_devices_are_reported_absent(void **state)
{
	struct {
		ULONG Size, Flags;
		USHORT VendorID, DeviceID;
		UCHAR RevisionID;
		USHORT SubVendorID, SubSystemID;
		UCHAR BaseClass, SubClass, ProgIf;
	} parameters = {.Size = sizeof(parameters), .Flags = 0x8, .BaseClass = 3, .SubClass = 2};
	struct port_fixture *f = *state;
	BOOLEAN present = FALSE;

	port_fixture_run(f);
	assert_int_equal(
		services(f)->DxgkCbIsDevicePresent(handle(f), (void *)&parameters, &present),
		STATUS_SUCCESS);
	assert_true(present);
	parameters.Flags = 0x4;
	parameters.VendorID = 0x10DE;
	assert_int_equal(
		services(f)->DxgkCbIsDevicePresent(handle(f), (void *)&parameters, &present),
		STATUS_SUCCESS);
	assert_false(present);
	assert_int_equal(services(f)->DxgkCbIsDevicePresent(handle(f), NULL, &present),
			 STATUS_INVALID_PARAMETER);
}

/* ---- the caller's device ---- */

static void wrong_handle(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	if (call->ddi == VIDMM_DDI_PATCH)
		*(BOOLEAN *)context = m->services.DxgkCbQueueDpc(m);
}

static void an_adapter_handle_instead_of_the_device_handle_is_refused(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_PATCH args = {.SubmissionFenceId = 1};
	BOOLEAN queued = TRUE;

	port_fixture_run(f);
	f->m->hook = wrong_handle;
	f->m->hook_context = &queued;
	assert_int_equal(vmm_port_patch(f->port, &args), STATUS_SUCCESS);
	assert_false(queued);
	assert_finding(f, "NT-07",
		       "DxgkCbQueueDpc: the handle is not DXGKRNL_INTERFACE.DeviceHandle");
	assert_int_equal(f->dpcs, 0);
}

struct asked {
	void *data, *specific;
	D3DKMT_HANDLE parent, child;
	NTSTATUS capture;
};

static void ask_handles(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	DXGKARGCB_GETHANDLEDATA data = {.hObject = 0x40000123, .Type = DXGK_HANDLE_ALLOCATION};
	DXGKARGCB_ENUMHANDLECHILDREN children = {.hObject = 0x40000001};
	DXGKARGCB_GETCAPTUREADDRESS capture = {.hAllocation = 1};
	struct asked *asked = context;

	if (call->ddi != VIDMM_DDI_PATCH)
		return;
	asked->data = m->services.DxgkCbGetHandleData(&data);
	data.Flags.DeviceSpecific = 1;
	asked->specific = m->services.DxgkCbGetHandleData(&data);
	asked->parent = m->services.DxgkCbGetHandleParent(41);
	asked->child = m->services.DxgkCbEnumHandleChildren(&children);
	asked->capture = m->services.DxgkCbGetCaptureAddress(&capture);
}

static void handle_queries_are_forwarded_to_the_core(void **state)
{
	struct port_fixture *f = *state;
	DXGKARGCB_GETHANDLEDATA data = {.hObject = 1, .Type = DXGK_HANDLE_ALLOCATION};
	DXGKARG_PATCH args = {.SubmissionFenceId = 1};
	struct asked asked = {0};

	port_fixture_run(f);
	f->m->hook = ask_handles;
	f->m->hook_context = &asked;
	assert_int_equal(vmm_port_patch(f->port, &args), STATUS_SUCCESS);
	assert_ptr_equal(asked.data, &f->asked_handle);
	assert_ptr_equal(asked.specific, &f->asked_type);
	assert_int_equal(f->asked_handle, 0x40000123);
	assert_int_equal(f->asked_type, DXGK_HANDLE_ALLOCATION);
	assert_int_equal(asked.parent, 42);
	assert_int_equal(asked.child, 0);
	assert_int_equal(asked.capture, STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "DxgkCbGetCaptureAddress is not built"));
	/* Outside of any DDI the adapter of a handle is unknown. */
	assert_null(services(f)->DxgkCbGetHandleData(&data));
}

static void services_that_are_not_supported_report_it(void **state)
{
	struct port_fixture *f = *state;
	INTERFACE interface;

	port_fixture_run(f);
	assert_int_equal(services(f)->DxgkCbEvalAcpiMethod(handle(f), 0, NULL, 0, NULL, 0),
			 STATUS_NOT_SUPPORTED);
	assert_non_null(strstr(f->reason, "DxgkCbEvalAcpiMethod is not built"));
	assert_int_equal(f->last_callback, VIDMM_CB_OTHER);
	assert_int_equal(f->last_callback_status, STATUS_NOT_SUPPORTED);
	assert_int_equal(services(f)->DxgkCbIndicateChildStatus(handle(f), NULL),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(services(f)->DxgkCbQueryServices(handle(f), DxgkServicesAgp, &interface),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(services(f)->DxgkCbExcludeAdapterAccess(handle(f), 0, NULL, NULL),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(services(f)->DxgkCbDestroyContextAllocation(handle(f), NULL),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(services(f)->DxgkCbCompletePStateTransition(handle(f), 0, 0),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(f->reasons, 6);
}

static void every_service_of_the_version_is_set(void **state)
{
	struct port_fixture *f = *state;
	void *pointer;

	port_fixture_run(f);
	for (size_t at = offsetof(DXGKRNL_INTERFACE, DxgkCbEvalAcpiMethod); at < services(f)->Size;
	     at += sizeof(pointer)) {
		memcpy(&pointer, (char *)services(f) + at, sizeof(pointer));
		assert_non_null(pointer);
	}
	port_fixture_stop(f);
	scripted_set_version(f->m, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
	port_fixture_run(f);
	assert_int_equal(services(f)->Size, sizeof(DXGKRNL_INTERFACE));
	for (size_t at = offsetof(DXGKRNL_INTERFACE, DxgkCbEvalAcpiMethod); at < services(f)->Size;
	     at += sizeof(pointer)) {
		memcpy(&pointer, (char *)services(f) + at, sizeof(pointer));
		assert_non_null(pointer);
	}
}

/* ---- DPCs (SUB-09) ---- */

struct dpc_answers {
	struct port_fixture *f;
	BOOLEAN first, second;
	uint32_t inside; /* DPCs that ran before the level dropped */
	uint32_t irql;
	NTSTATUS status;
};

static BOOLEAN queue_twice(PVOID context)
{
	struct dpc_answers *a = context;

	a->irql = KeGetCurrentIrql();
	a->first = services(a->f)->DxgkCbQueueDpc(handle(a->f));
	a->second = services(a->f)->DxgkCbQueueDpc(handle(a->f));
	a->inside = a->f->m->dpcs;
	return 1;
}

static void sub_09_one_dpc_runs_for_a_batch_of_interrupts(void **state)
{
	struct port_fixture *f = *state;
	struct dpc_answers a = {.f = f};
	BOOLEAN result = FALSE;

	port_fixture_run(f);
	assert_int_equal(
		services(f)->DxgkCbSynchronizeExecution(handle(f), queue_twice, &a, 0, &result),
		STATUS_SUCCESS);
	assert_true(result);
	assert_int_equal(a.irql, VMM_NT_DEVICE);
	assert_true(a.first);
	assert_false(a.second);
	assert_int_equal(a.inside, 0);
	assert_int_equal(f->m->dpcs, 1);
	assert_int_equal(f->dpcs, 1);
	assert_int_equal(f->dpc_irql, DISPATCH_LEVEL);
	assert_int_equal(vmm_nt_irql(f->nt), PASSIVE_LEVEL);
	assert_nothing_found(f);
}

static void sub_09_a_dpc_waits_until_the_irql_drops(void **state)
{
	struct port_fixture *f = *state;
	KIRQL before;

	port_fixture_run(f);
	KeRaiseIrql(DISPATCH_LEVEL, &before);
	assert_true(services(f)->DxgkCbQueueDpc(handle(f)));
	assert_false(services(f)->DxgkCbQueueDpc(handle(f)));
	assert_int_equal(f->m->dpcs, 0);
	KeLowerIrql(before);
	assert_int_equal(f->m->dpcs, 1);
	/* At PASSIVE_LEVEL it runs at once, and the next call queues a new one. */
	assert_true(services(f)->DxgkCbQueueDpc(handle(f)));
	assert_int_equal(f->m->dpcs, 2);
}

/* ---- interrupts ---- */

static void sub_06_interrupt_reaches_the_sink_at_dirql(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	scripted_report(f->m, 1, 17);
	assert_int_equal(f->interrupts, 1);
	assert_int_equal(f->interrupt_irql[0], VMM_NT_DEVICE);
	assert_int_equal(f->interrupt[0].InterruptType, DXGK_INTERRUPT_DMA_COMPLETED);
	assert_int_equal(f->interrupt[0].DmaCompleted.SubmissionFenceId, 17);
	assert_int_equal(f->interrupt[0].DmaCompleted.NodeOrdinal, 1);
	assert_int_equal(f->dpcs, 1);
	assert_nothing_found(f);
}

static void sub_10_notify_interrupt_at_passive_is_reported(void **state)
{
	struct port_fixture *f = *state;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED};

	port_fixture_run(f);
	services(f)->DxgkCbNotifyInterrupt(handle(f), &data);
	assert_finding(f, "SUB-10", "at IRQL 0");
	assert_int_equal(f->interrupts, 0);
}

/* The IRQL alone is not enough: the caller must hold the interrupt lock. */
static void sub_10_notify_interrupt_without_the_interrupt_lock_is_reported(void **state)
{
	struct port_fixture *f = *state;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED};
	KIRQL before;

	port_fixture_run(f);
	KeRaiseIrql(VMM_NT_DEVICE, &before);
	services(f)->DxgkCbNotifyInterrupt(handle(f), &data);
	KeLowerIrql(before);
	assert_finding(f, "SUB-10", "at IRQL 5");
	assert_int_equal(f->interrupts, 0);
}

struct notification {
	struct port_fixture *f;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;
	bool queue;
};

static BOOLEAN notify(PVOID context)
{
	struct notification *n = context;

	services(n->f)->DxgkCbNotifyInterrupt(handle(n->f), &n->data);
	return n->queue && services(n->f)->DxgkCbQueueDpc(handle(n->f));
}

static void run_notification(struct port_fixture *f, struct notification *n)
{
	BOOLEAN result;

	n->f = f;
	assert_int_equal(services(f)->DxgkCbSynchronizeExecution(handle(f), notify, n, 0, &result),
			 STATUS_SUCCESS);
}

static void sub_08_a_missing_dpc_after_the_interrupt_is_reported(void **state)
{
	struct port_fixture *f = *state;
	struct notification n = {.data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED};

	port_fixture_run(f);
	run_notification(f, &n);
	assert_finding(f, "SUB-08", "no DPC queued");
	assert_int_equal(f->interrupts, 1);
	assert_int_equal(f->dpcs, 0);
}

static void sch_07_sch_08_an_interrupt_of_a_missing_engine_is_reported(void **state)
{
	struct port_fixture *f = *state;
	struct notification n = {.queue = true};

	port_fixture_run(f);
	n.data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
	n.data.DmaCompleted.NodeOrdinal = 2;
	run_notification(f, &n);
	assert_finding(f, "SCH-07", "of node 2, engine 0");
	n.data.DmaCompleted.NodeOrdinal = 1;
	n.data.DmaCompleted.EngineOrdinal = 1;
	run_notification(f, &n);
	assert_finding(f, "SCH-08", "of node 1, engine 1");
	assert_int_equal(f->interrupts, 0);
}

static void report_in(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	if (call->ddi == *(enum vidmm_ddi *)context)
		scripted_report(m, 0, 1);
}

static void sub_12_an_interrupt_during_the_start_is_reported(void **state)
{
	static enum vidmm_ddi where = VIDMM_DDI_START_DEVICE;
	struct port_fixture *f = *state;

	f->m->hook = report_in;
	f->m->hook_context = &where;
	assert_int_equal(port_fixture_start(f), STATUS_SUCCESS);
	assert_finding(f, "SUB-12", "interrupt type 1 before the adapter has started");
	assert_int_equal(f->interrupts + f->dpcs, 0);
	assert_int_equal(f->m->dpcs, 1);
}

static void sub_12_an_interrupt_during_the_stop_is_reported(void **state)
{
	static enum vidmm_ddi where = VIDMM_DDI_STOP_DEVICE;
	struct port_fixture *f = *state;

	port_fixture_run(f);
	f->m->hook = report_in;
	f->m->hook_context = &where;
	port_fixture_stop(f);
	assert_finding(f, "SUB-12", "after it stops");
	assert_int_equal(f->interrupts + f->dpcs, 0);
}

static void interrupts_of_displays_are_not_built(void **state)
{
	struct port_fixture *f = *state;
	struct notification n = {.queue = true, .data.InterruptType = DXGK_INTERRUPT_CRTC_VSYNC};

	port_fixture_run(f);
	run_notification(f, &n);
	assert_int_equal(f->interrupts, 0);
	assert_nothing_found(f);
}

static void sub_07_notify_dpc_outside_of_the_dpc_is_reported(void **state)
{
	struct port_fixture *f = *state;

	port_fixture_run(f);
	services(f)->DxgkCbNotifyDpc(handle(f));
	assert_finding(f, "SUB-07", "DxgkCbNotifyDpc at IRQL 0");
	assert_int_equal(f->dpcs, 0);
}

/* ---- DxgkCbSynchronizeExecution (SUB-13) ---- */

static void sub_13_synchronize_execution_checks_its_arguments(void **state)
{
	struct port_fixture *f = *state;
	struct dpc_answers a = {.f = f};
	BOOLEAN result;

	port_fixture_run(f);
	assert_int_equal(
		services(f)->DxgkCbSynchronizeExecution(handle(f), queue_twice, &a, 1, &result),
		STATUS_INVALID_PARAMETER);
	assert_finding(f, "SUB-13", "message 1");
	assert_int_equal(services(f)->DxgkCbSynchronizeExecution(handle(f), NULL, &a, 0, &result),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(services(f)->DxgkCbSynchronizeExecution(NULL, queue_twice, &a, 0, &result),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(a.irql, 0);
}

static BOOLEAN nested(PVOID context)
{
	struct dpc_answers *a = context;
	BOOLEAN result;

	return services(a->f)->DxgkCbSynchronizeExecution(handle(a->f), queue_twice, a, 0,
							  &result) == STATUS_INVALID_DEVICE_STATE;
}

static void sub_13_synchronize_execution_at_interrupt_level_is_reported(void **state)
{
	struct port_fixture *f = *state;
	struct dpc_answers a = {.f = f};
	BOOLEAN refused = FALSE;

	port_fixture_run(f);
	assert_int_equal(
		services(f)->DxgkCbSynchronizeExecution(handle(f), nested, &a, 0, &refused),
		STATUS_SUCCESS);
	assert_true(refused);
	assert_finding(f, "NT-01", "DxgkCbSynchronizeExecution called at IRQL 5");
}

static void synchronize_in_remove_device(void *context, struct scripted_miniport *m,
					 struct scripted_call *call)
{
	struct dpc_answers *a = context;
	BOOLEAN result;

	if (call->ddi != VIDMM_DDI_REMOVE_DEVICE)
		return;
	a->status = m->services.DxgkCbSynchronizeExecution(m->services.DeviceHandle, queue_twice, a,
							   0, &result);
	a->first = m->services.DxgkCbQueueDpc(m->services.DeviceHandle);
}

static void sub_13_synchronize_execution_fails_without_an_interrupt(void **state)
{
	struct port_fixture *f = *state;
	struct dpc_answers a = {.f = f, .first = TRUE};

	port_fixture_run(f);
	f->m->hook = synchronize_in_remove_device;
	f->m->hook_context = &a;
	port_fixture_stop(f);
	assert_int_equal(a.status, STATUS_UNSUCCESSFUL);
	assert_false(a.first);
	assert_int_equal(f->m->dpcs, 0);
}

struct racer {
	struct port_fixture *f;
	uint32_t counter, most;
	uint32_t inside;
};

static BOOLEAN race_step(PVOID context)
{
	struct racer *r = context;

	r->inside++;
	r->most = r->inside > r->most ? r->inside : r->most;
	r->counter++;
	/* Time passes with the lock held: the other thread finds it taken. */
	vmm_os_sleep_until(r->f->os, vmm_os_now_ns(r->f->os) + 1000);
	r->inside--;
	return 1;
}

static void race(void *arg)
{
	struct racer *r = arg;
	BOOLEAN result;

	for (int i = 0; i < 20; i++)
		services(r->f)->DxgkCbSynchronizeExecution(handle(r->f), race_step, r, 0, &result);
}

static void sub_13_synchronize_execution_excludes_other_threads(void **state)
{
	struct port_fixture *f = *state;
	struct vmm_os_thread *thread;
	struct racer r = {.f = f};

	port_fixture_run(f);
	assert_int_equal(vmm_os_thread_create(f->os, "racer", race, &r, &thread), VMM_OK);
	race(&r);
	vmm_os_thread_join(thread);
	assert_int_equal(r.counter, 40);
	assert_int_equal(r.most, 1);
}

/*
 * Four engines report at once: no interrupt is lost, the sink is never entered twice, and every
 * batch gets its DPC.
 */
struct engine {
	struct port_fixture *f;
	uint32_t node;
};
#define REPORTS 300u

static void report_many(void *arg)
{
	struct engine *e = arg;

	for (uint32_t i = 1; i <= REPORTS; i++)
		scripted_report(e->f->m, e->node, i);
}

static void sub_09_sub_10_engines_on_real_threads(void **state)
{
	struct port_fixture *f = *state;
	struct vmm_os_thread *thread[4];
	struct engine engine[4];

	f->m->settings.caps.GpuEngineTopology.NbAsymetricProcessingNodes = 4;
	port_fixture_run(f);
	for (uint32_t i = 0; i < 4; i++) {
		engine[i] = (struct engine){f, i};
		assert_int_equal(
			vmm_os_thread_create(f->os, "engine", report_many, &engine[i], &thread[i]),
			VMM_OK);
	}
	for (uint32_t i = 0; i < 4; i++)
		vmm_os_thread_join(thread[i]);
	assert_int_equal(f->interrupts, 4 * REPORTS);
	assert_true(f->dpcs >= 1 && f->dpcs <= 4 * REPORTS);
	assert_int_equal(f->dpcs, f->m->dpcs);
	assert_nothing_found(f);
}

static BOOLEAN map_from_the_interrupt_level(PVOID context)
{
	struct dpc_answers *a = context;
	DXGK_DEVICE_INFO info;

	a->status = services(a->f)->DxgkCbGetDeviceInformation(handle(a->f), &info);
	return TRUE;
}

static void nt_01_a_passive_service_at_interrupt_level_is_reported(void **state)
{
	struct port_fixture *f = *state;
	struct dpc_answers a = {.f = f};
	BOOLEAN result;

	port_fixture_run(f);
	assert_int_equal(services(f)->DxgkCbSynchronizeExecution(
				 handle(f), map_from_the_interrupt_level, &a, 0, &result),
			 STATUS_SUCCESS);
	assert_finding(f, "NT-01", "DxgkCbGetDeviceInformation called at IRQL 5, its limit is 0");
	assert_int_equal(a.status, STATUS_INVALID_PARAMETER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(device_information_describes_the_resources),
		TEST(registry_values_are_under_the_devices_key),
		TEST(mapping_the_bar_succeeds),
		TEST(mapping_outside_the_bar_is_refused),
		TEST(a_leaked_bar_mapping_is_reported),
		TEST(configuration_space_is_read_and_written),
		TEST(other_devices_are_reported_absent),
		TEST(an_adapter_handle_instead_of_the_device_handle_is_refused),
		TEST(handle_queries_are_forwarded_to_the_core),
		TEST(services_that_are_not_supported_report_it),
		TEST(every_service_of_the_version_is_set),
		TEST(sub_09_one_dpc_runs_for_a_batch_of_interrupts),
		TEST(sub_09_a_dpc_waits_until_the_irql_drops),
		TEST(sub_06_interrupt_reaches_the_sink_at_dirql),
		TEST(sub_10_notify_interrupt_at_passive_is_reported),
		TEST(sub_10_notify_interrupt_without_the_interrupt_lock_is_reported),
		TEST(sub_08_a_missing_dpc_after_the_interrupt_is_reported),
		TEST(sch_07_sch_08_an_interrupt_of_a_missing_engine_is_reported),
		TEST(sub_12_an_interrupt_during_the_start_is_reported),
		TEST(sub_12_an_interrupt_during_the_stop_is_reported),
		TEST(interrupts_of_displays_are_not_built),
		TEST(sub_07_notify_dpc_outside_of_the_dpc_is_reported),
		TEST(sub_13_synchronize_execution_checks_its_arguments),
		TEST(sub_13_synchronize_execution_at_interrupt_level_is_reported),
		TEST(sub_13_synchronize_execution_fails_without_an_interrupt),
		TEST(sub_13_synchronize_execution_excludes_other_threads),
		cmocka_unit_test_setup_teardown(sub_09_sub_10_engines_on_real_threads,
						port_fixture_setup_linux, port_fixture_teardown),
		TEST(nt_01_a_passive_service_at_interrupt_level_is_reported),
	};

	return cmocka_run_group_tests_name("port_callbacks", tests, NULL, NULL);
}
