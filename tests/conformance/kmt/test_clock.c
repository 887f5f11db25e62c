/* SPDX-License-Identifier: MIT */
/* D3DKMTQueryClockCalibration: the clocks of a node, which the miniport reads (CLK). */
#include "kmt_world.h"

#include "base/base.h"
#include "support/softgpu_table.h"

#include <d3dkmddi.h>
#include <dispmprt.h>
#include <ntddk.h>
#include <string.h>

/* ---- softgpu, whose calls a test sees ---- */

static DRIVER_INITIALIZATION_DATA softgpu;
static bool without_entry; /* read at the start */
static struct {
	uint32_t calls, node, engine;
	NTSTATUS answer; /* instead of softgpu's */
	bool stopped;    /* a frequency of 0 */
} miniport;

NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);

static NTSTATUS APIENTRY calibrate(IN_CONST_HANDLE hAdapter, UINT32 node, UINT32 engine,
				   OUT_PDXGKARG_CALIBRATEGPUCLOCK args)
{
	miniport.calls++;
	miniport.node = node;
	miniport.engine = engine;
	assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
	NTSTATUS status = softgpu.DxgkDdiCalibrateGpuClock(hAdapter, node, engine, args);
	if (miniport.stopped)
		args->GpuFrequency = 0;
	return miniport.answer ? miniport.answer : status;
}

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	DRIVER_INITIALIZATION_DATA ours = softgpu_table(data);

	softgpu = ours;
	ours.DxgkDdiCalibrateGpuClock = without_entry ? NULL : calibrate;
	return __real_DxgkInitialize(driver, path, &ours);
}

/* ---- the caller ---- */

struct fixture {
	struct kmt_world w;
	D3DKMT_QUERYCLOCKCALIBRATION args, before;
};

static void start(struct fixture *f, void **state)
{
	memset(&miniport, 0, sizeof(miniport));
	memset(f, 0, sizeof(*f));
	kmt_start(&f->w, state);
	f->w.client.reasons = 0;
	f->args.hAdapter = f->w.adapter;
	memset(&f->args.ClockData, 0xA5, sizeof(f->args.ClockData));
	f->before = f->args;
}

static void failed(const struct fixture *f)
{
	assert_memory_equal(&f->args.ClockData, &f->before.ClockData, sizeof(f->args.ClockData));
}

/* ---- the tests ---- */

static void clk_01_the_miniport_reads_the_clocks_of_the_node(void **state)
{
	struct fixture f;

	start(&f, state);
	for (uint32_t node = 0; node < 2; node++) {
		f.args.NodeOrdinal = node;
		f.args.ClockData.GpuFrequency = 0;
		assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_SUCCESS);
		assert_int_equal(miniport.calls, node + 1);
		assert_int_equal(miniport.node, node);
		assert_int_equal(miniport.engine, 0);
		assert_true(f.args.ClockData.GpuFrequency == 1000000000);
		assert_int_equal(f.args.ClockData.Flags.Value, 0);
	}
	/* both clocks go on, at their frequencies */
	const DXGK_GPUCLOCKDATA first = f.args.ClockData;
	vidmm_settle(f.w.client.host);
	assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_SUCCESS);
	assert_true(f.args.ClockData.GpuClockCounter >= first.GpuClockCounter);
	assert_true(f.args.ClockData.CpuClockCounter >= first.CpuClockCounter);
	kmt_stop(&f.w);
}

static void clk_02_a_node_or_physical_adapter_that_does_not_exist_is_refused(void **state)
{
	static const struct {
		uint32_t node, physical;
	} absent[] = {{2, 0}, {UINT32_MAX, 0}, {0, 1}, {0, UINT32_MAX}};
	struct fixture f;

	start(&f, state);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(absent); i++) {
		f.args.NodeOrdinal = absent[i].node;
		f.args.PhysicalAdapterIndex = absent[i].physical;
		assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_INVALID_PARAMETER);
		kmt_found(&f.w, "CLK-02");
		failed(&f);
	}
	assert_int_equal(miniport.calls, 0);
	kmt_stop(&f.w);
}

static void clk_01_hnd_07_hnd_11_bad_arguments_are_refused(void **state)
{
	struct fixture f;

	start(&f, state);
	assert_int_equal(D3DKMTQueryClockCalibration(NULL), STATUS_INVALID_PARAMETER);
	kmt_found(&f.w, "HND-11");
	const D3DKMT_HANDLE bad[] = {0, f.w.device, f.w.adapter + 64, 0xFFFFFFC0};
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(bad); i++) {
		f.args.hAdapter = bad[i];
		assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_INVALID_PARAMETER);
		kmt_found(&f.w, "HND-07");
		failed(&f);
	}
	assert_int_equal(miniport.calls, 0);
	kmt_stop(&f.w);
}

static void clk_03_a_miniport_without_the_ddi_is_not_supported(void **state)
{
	struct fixture f;

	without_entry = true;
	start(&f, state);
	without_entry = false;
	assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_NOT_SUPPORTED);
	kmt_told(&f.w, STATUS_NOT_SUPPORTED, "CLK-03: the miniport has no");
	failed(&f);
	kmt_stop(&f.w);
}

static void clk_04_failures_of_the_miniport_write_nothing(void **state)
{
	struct fixture f;

	start(&f, state);
	miniport.answer = STATUS_DATA_ERROR;
	assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_DATA_ERROR);
	kmt_told(&f.w, STATUS_DATA_ERROR, "CLK-04: the miniport failed DxgkDdiCalibrateGpuClock");
	failed(&f);
	miniport.answer = STATUS_PENDING; /* a success code that is none */
	assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_INVALID_PARAMETER);
	kmt_found(&f.w, "CLK-04");
	failed(&f);
	miniport.answer = STATUS_SUCCESS;
	miniport.stopped = true;
	assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_UNSUCCESSFUL);
	kmt_found(&f.w, "CLK-04");
	failed(&f);
	miniport.stopped = false;
	assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_SUCCESS);
	kmt_stop(&f.w);
}

static void clk_04_a_removed_adapter_has_no_clock(void **state)
{
	struct fixture f;

	start(&f, state);
	assert_int_equal(vidmm_adapter_remove(f.w.client.adapter, VIDMM_REMOVAL_PNP), 0);
	assert_int_equal(D3DKMTQueryClockCalibration(&f.args), STATUS_DEVICE_REMOVED);
	failed(&f);
	assert_int_equal(miniport.calls, 0);
	kmt_stop(&f.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(clk_01_the_miniport_reads_the_clocks_of_the_node),
		ON_BOTH(clk_01_hnd_07_hnd_11_bad_arguments_are_refused),
		ON_BOTH(clk_02_a_node_or_physical_adapter_that_does_not_exist_is_refused),
		ON_BOTH(clk_03_a_miniport_without_the_ddi_is_not_supported),
		ON_BOTH(clk_04_failures_of_the_miniport_write_nothing),
		ON_BOTH(clk_04_a_removed_adapter_has_no_clock),
	};

	return cmocka_run_group_tests_name("kmt clock", tests, NULL, NULL);
}
