/* SPDX-License-Identifier: MIT */
/* Escapes to the miniport: arguments, private data, and the escape of softgpu. */
#define _GNU_SOURCE /* fileno, setenv */

#include "kmt_world.h"

#include "base/base.h"
#include "support/softgpu_table.h"

#include <d3dkmddi.h>
#include <dispmprt.h>
#include <ntddk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HARDWARE_ACCESS = 0x1, DEVICE_STATUS_QUERY = 0x2, NO_ADAPTER_SYNCHRONIZATION = 0x8 };

/* ---- softgpu, whose calls a test sees ---- */

static DRIVER_INITIALIZATION_DATA softgpu;
static bool without_entry; /* read at the start */
static struct {
	uint32_t calls;
	DXGKARG_ESCAPE args; /* of the last call */
	const void *clients; /* must not be the buffer that the miniport gets */
	NTSTATUS answer;     /* instead of softgpu's; then the data is overwritten, too */
	HANDLE device, context;
} miniport;

NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);

static NTSTATUS APIENTRY escape_entry(IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_ESCAPE args)
{
	miniport.calls++;
	miniport.args = *args;
	assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
	assert_true(!miniport.clients || args->pPrivateDriverData != miniport.clients);
	if (!miniport.answer)
		return softgpu.DxgkDdiEscape(hAdapter, args);
	if (args->PrivateDriverDataSize)
		memset(args->pPrivateDriverData, 0xBA, args->PrivateDriverDataSize);
	return miniport.answer == STATUS_PENDING + 1 ? STATUS_SUCCESS : miniport.answer;
}

static NTSTATUS APIENTRY create_device(IN_CONST_HANDLE hAdapter, INOUT_PDXGKARG_CREATEDEVICE args)
{
	NTSTATUS status = softgpu.DxgkDdiCreateDevice(hAdapter, args);

	miniport.device = args->hDevice;
	return status;
}

static NTSTATUS APIENTRY create_context(IN_CONST_HANDLE hDevice, INOUT_PDXGKARG_CREATECONTEXT args)
{
	NTSTATUS status = softgpu.DxgkDdiCreateContext(hDevice, args);

	miniport.context = args->hContext;
	return status;
}

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	DRIVER_INITIALIZATION_DATA ours = softgpu_table(data);

	softgpu = ours;
	ours.DxgkDdiEscape = without_entry ? NULL : escape_entry;
	ours.DxgkDdiCreateDevice = create_device;
	ours.DxgkDdiCreateContext = create_context;
	return __real_DxgkInitialize(driver, path, &ours);
}

/* ---- the caller ---- */

struct fixture {
	struct kmt_world w;
	struct softgpu_escape data;
	D3DKMT_ESCAPE args;
};

static void start(struct fixture *f, void **state)
{
	memset(&miniport, 0, sizeof(miniport));
	memset(f, 0, sizeof(*f));
	kmt_start(&f->w, state);
	f->w.client.reasons = 0;
	miniport.clients = &f->data;
	f->data = (struct softgpu_escape){.version = SOFTGPU_ESCAPE_VERSION,
					  .command = SOFTGPU_ESCAPE_QUERY};
	f->args = (D3DKMT_ESCAPE){.hAdapter = f->w.adapter,
				  .Type = D3DKMT_ESCAPE_DRIVERPRIVATE,
				  .pPrivateDriverData = &f->data,
				  .PrivateDriverDataSize = sizeof(f->data)};
}

static void refused(struct fixture *f, const char *rule)
{
	assert_int_equal(D3DKMTEscape(&f->args), STATUS_INVALID_PARAMETER);
	kmt_found(&f->w, rule);
	assert_int_equal(miniport.calls, 0);
}

static void not_built(struct fixture *f, const char *text)
{
	assert_int_equal(D3DKMTEscape(&f->args), STATUS_NOT_SUPPORTED);
	kmt_told(&f->w, STATUS_NOT_SUPPORTED, text);
	assert_int_equal(miniport.calls, 0);
}

/* ---- the tests ---- */

static void esc_01_a_zeroed_argument_is_refused(void **state)
{
	struct fixture f;

	start(&f, state);
	memset(&f.args, 0, sizeof(f.args));
	refused(&f, "HND-07");
	f.args.Type = D3DKMT_ESCAPE_VIDMM; /* the adapter is checked first */
	refused(&f, "HND-07");
	f.args.hAdapter = f.w.device;
	refused(&f, "HND-07");
	kmt_stop(&f.w);
}

static void esc_02_private_data_reaches_the_miniport_and_comes_back(void **state)
{
	struct fixture f;

	start(&f, state);
	f.args.Flags.Value = NO_ADAPTER_SYNCHRONIZATION;
	assert_int_equal(D3DKMTEscape(&f.args), STATUS_SUCCESS);
	assert_int_equal(miniport.calls, 1);
	assert_null(miniport.args.hDevice);
	assert_null(miniport.args.hContext);
	assert_int_equal(miniport.args.Flags.Value, NO_ADAPTER_SYNCHRONIZATION);
	assert_int_equal(miniport.args.PrivateDriverDataSize, sizeof(f.data));
	assert_int_equal(f.data.vram_bytes, 4 * MIB);
	assert_int_equal(f.data.aperture_bytes, 64 * MIB);
	assert_int_equal(f.data.node_count, 2);
	assert_int_equal(f.data.interface_version, 0x4002);
	kmt_stop(&f.w);
}

static void esc_02_an_escape_may_have_no_data(void **state)
{
	struct fixture f;

	start(&f, state);
	f.args.pPrivateDriverData = NULL;
	f.args.PrivateDriverDataSize = 0;
	miniport.answer = STATUS_PENDING + 1; /* success */
	assert_int_equal(D3DKMTEscape(&f.args), STATUS_SUCCESS);
	assert_null(miniport.args.pPrivateDriverData);
	assert_int_equal(miniport.args.PrivateDriverDataSize, 0);
	kmt_stop(&f.w);
}

static void esc_02_a_failure_of_the_miniport_is_returned_and_changes_nothing(void **state)
{
	static const NTSTATUS answers[] = {STATUS_PRIVILEGED_INSTRUCTION, STATUS_NO_MEMORY,
					   STATUS_DATA_ERROR};
	struct fixture f;

	start(&f, state);
	const struct softgpu_escape before = f.data;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(answers); i++) {
		miniport.answer = answers[i];
		assert_int_equal(D3DKMTEscape(&f.args), answers[i]);
		kmt_told(&f.w, answers[i], "ESC-02: the miniport failed DxgkDdiEscape with 0xc000");
		assert_memory_equal(&f.data, &before, sizeof(before));
	}
	miniport.answer = STATUS_PENDING; /* a success code that is none */
	assert_int_equal(D3DKMTEscape(&f.args), STATUS_INVALID_PARAMETER);
	kmt_found(&f.w, "ESC-02");
	assert_memory_equal(&f.data, &before, sizeof(before));
	kmt_stop(&f.w);
}

static void esc_02_missing_or_oversized_data_is_refused(void **state)
{
	struct fixture f;

	start(&f, state);
	f.args.pPrivateDriverData = NULL;
	refused(&f, "ESC-02");
	f.args.pPrivateDriverData = &f.data;
	f.args.PrivateDriverDataSize = (1u << 20) + 1;
	refused(&f, "ESC-02");
	kmt_stop(&f.w);
}

static void esc_02_esc_03_device_and_context_are_translated(void **state)
{
	struct fixture f;
	struct client_context c;

	start(&f, state);
	f.w.device = f.args.hDevice = kmt_device(&f.w);
	assert_int_equal(D3DKMTEscape(&f.args), STATUS_SUCCESS);
	assert_non_null(miniport.args.hDevice);
	assert_ptr_equal(miniport.args.hDevice, miniport.device);
	assert_null(miniport.args.hContext);
	kmt_context(&f.w, &c);
	f.args.hContext = (D3DKMT_HANDLE)(uintptr_t)c.c.hContext;
	assert_int_equal(D3DKMTEscape(&f.args), STATUS_SUCCESS);
	assert_ptr_equal(miniport.args.hDevice, miniport.device);
	assert_non_null(miniport.args.hContext);
	assert_ptr_equal(miniport.args.hContext, miniport.context);
	kmt_stop(&f.w);
}

static void esc_03_device_and_context_must_fit(void **state)
{
	struct fixture f;
	struct client_context c;

	start(&f, state);
	kmt_context(&f.w, &c);
	f.args.hContext = (D3DKMT_HANDLE)(uintptr_t)c.c.hContext;
	refused(&f, "ESC-03"); /* without hDevice */
	f.args.hDevice = kmt_device(&f.w);
	refused(&f, "ESC-03"); /* of another device */
	f.args.hContext = f.args.hDevice;
	refused(&f, "HND-07");
	f.args.hContext = 0;
	f.args.hDevice = f.w.adapter;
	refused(&f, "HND-07");
	kmt_stop(&f.w);
}

static void esc_04_other_types_and_flags_are_not_supported(void **state)
{
	static const UINT flags[] = {0x1, 0x2, 0x4, 0x20, 0x80};
	struct fixture f;

	start(&f, state);
	f.args.Type = D3DKMT_ESCAPE_VIDMM;
	not_built(&f, "ESC-04: D3DKMTEscape of type 1");
	f.args.Type = (D3DKMT_ESCAPETYPE)1025;
	not_built(&f, "ESC-04: D3DKMTEscape of type 1025");
	f.args.Type = D3DKMT_ESCAPE_DRIVERPRIVATE;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(flags); i++) {
		f.args.Flags.Value = flags[i];
		not_built(&f, "ESC-04: D3DKMTEscape of type 0 with flags 0x");
	}
	kmt_stop(&f.w);
}

static void esc_04_a_miniport_without_the_ddi_is_not_supported(void **state)
{
	struct fixture f;

	without_entry = true;
	start(&f, state);
	without_entry = false;
	not_built(&f, "ESC-04: the miniport has no DxgkDdiEscape");
	kmt_stop(&f.w);
}

static void esc_05_reserved_and_excluding_flags_are_refused(void **state)
{
	static const UINT flags[] = {0x10, 0x100, 0x80000000u,
				     HARDWARE_ACCESS | DEVICE_STATUS_QUERY};
	struct fixture f;

	start(&f, state);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(flags); i++) {
		f.args.Flags.Value = flags[i];
		refused(&f, "ESC-05");
	}
	kmt_stop(&f.w);
}

/* ---- power ---- */

static void escape_without_device(void *argument)
{
	struct fixture *f = argument;

	assert_int_equal(D3DKMTEscape(&f->args), STATUS_SUCCESS);
}

static void esc_02_pnp_05_an_escape_waits_for_power(void **state)
{
	struct fixture f;
	struct vidmm_thread *thread;

	start(&f, state);
	assert_int_equal(
		vidmm_adapter_set_power(f.w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		0);
	assert_int_equal(
		vidmm_thread_create(f.w.client.host, "caller", escape_without_device, &f, &thread),
		0);
	vidmm_settle(f.w.client.host);
	assert_int_equal(miniport.calls, 0);
	assert_int_equal(vidmm_adapter_set_power(f.w.client.adapter, VIDMM_POWER_D0, 0), 0);
	vidmm_thread_join(thread);
	assert_int_equal(miniport.calls, 1);
	kmt_stop(&f.w);
}

/* ---- VIDMM_DEBUG ---- */

/* Returns whether an unsupported escape printed its reason on the standard error stream. */
static bool prints_the_reason(void **state, const char *debug)
{
	char text[4096] = "";
	struct fixture f;
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);

	assert_non_null(file);
	assert_int_equal(debug ? setenv("VIDMM_DEBUG", debug, 1) : unsetenv("VIDMM_DEBUG"), 0);
	start(&f, state);
	assert_int_equal(unsetenv("VIDMM_DEBUG"), 0);
	f.args.Type = D3DKMT_ESCAPE_VIDMM;
	(void)fflush(stderr);
	assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
	NTSTATUS status = D3DKMTEscape(&f.args);
	(void)fflush(stderr);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(status, STATUS_NOT_SUPPORTED);
	rewind(file);
	(void)!fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	close(saved);
	kmt_stop(&f.w);
	return strstr(text, "status=0xc00000bb : ESC-04: D3DKMTEscape of type 1");
}

static void q_160_vidmm_debug_prints_reasons(void **state)
{
	assert_true(prints_the_reason(state, "1"));
	assert_false(prints_the_reason(state, "0"));
	assert_false(prints_the_reason(state, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(esc_01_a_zeroed_argument_is_refused),
		ON_BOTH(esc_02_private_data_reaches_the_miniport_and_comes_back),
		ON_BOTH(esc_02_an_escape_may_have_no_data),
		ON_BOTH(esc_02_a_failure_of_the_miniport_is_returned_and_changes_nothing),
		ON_BOTH(esc_02_missing_or_oversized_data_is_refused),
		ON_BOTH(esc_02_esc_03_device_and_context_are_translated),
		ON_BOTH(esc_03_device_and_context_must_fit),
		ON_BOTH(esc_04_other_types_and_flags_are_not_supported),
		ON_BOTH(esc_04_a_miniport_without_the_ddi_is_not_supported),
		ON_BOTH(esc_05_reserved_and_excluding_flags_are_refused),
		ON_BOTH(esc_02_pnp_05_an_escape_waits_for_power),
		ON_BOTH(q_160_vidmm_debug_prints_reasons),
	};

	return cmocka_run_group_tests_name("kmt escape", tests, NULL, NULL);
}
