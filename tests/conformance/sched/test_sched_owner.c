/* SPDX-License-Identifier: MIT */
/* Owners of video present sources (OWN). The scripted miniport has two sources. */
#include "show_world.h"

#include <string.h>

enum { UNOWNED, SHARED, EXCLUSIVE, EXCLUSIVE_GDI, EMULATED };

static NTSTATUS own(D3DKMT_HANDLE device, uint32_t type, uint32_t source)
{
	const D3DKMT_VIDPNSOURCEOWNER_TYPE types[] = {(D3DKMT_VIDPNSOURCEOWNER_TYPE)type};
	const D3DKMT_SETVIDPNSOURCEOWNER args = {.hDevice = device,
						 .pType = types,
						 .pVidPnSourceId = &source,
						 .VidPnSourceCount = 1};

	return D3DKMTSetVidPnSourceOwner(&args);
}

static NTSTATUS release(D3DKMT_HANDLE device)
{
	const D3DKMT_SETVIDPNSOURCEOWNER args = {.hDevice = device};

	return D3DKMTSetVidPnSourceOwner(&args);
}

static NTSTATUS check(const struct show *s, uint32_t source)
{
	const D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP args = {.hAdapter = s->adapter,
							  .VidPnSourceId = source};

	return D3DKMTCheckVidPnExclusiveOwnership(&args);
}

static D3DKMT_HANDLE second_device(const struct show *s)
{
	D3DKMT_CREATEDEVICE args = {.hAdapter = s->adapter};

	assert_int_equal(D3DKMTCreateDevice(&args), STATUS_SUCCESS);
	return args.hDevice;
}

static void destroy(D3DKMT_HANDLE device)
{
	const D3DKMT_DESTROYDEVICE args = {.hDevice = device};

	assert_int_equal(D3DKMTDestroyDevice(&args), STATUS_SUCCESS);
}

static void own_01_arrays_are_given_as_their_count_says(void **state)
{
	D3DKMT_VIDPNSOURCEOWNER_TYPE types[17] = {D3DKMT_VIDPNSOURCEOWNER_EXCLUSIVE};
	D3DDDI_VIDEO_PRESENT_SOURCE_ID ids[17] = {0};
	struct show s;

	show_start(&s, state, NULL);
	D3DKMT_SETVIDPNSOURCEOWNER args = {.hDevice = s.device, .VidPnSourceCount = 1};
	assert_int_equal(D3DKMTSetVidPnSourceOwner(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "HND-11");
	for (uint32_t i = 0; i < 3; i++) {
		args.pType = i == 1 ? types : NULL;
		args.pVidPnSourceId = i == 2 ? ids : NULL;
		assert_int_equal(D3DKMTSetVidPnSourceOwner(&args), STATUS_INVALID_PARAMETER);
		world_expect_finding(&s.w, "OWN-01");
	}
	args.pType = types;
	args.pVidPnSourceId = ids;
	args.VidPnSourceCount = 17;
	assert_int_equal(D3DKMTSetVidPnSourceOwner(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "OWN-01");
	args.hDevice = s.adapter;
	assert_int_equal(D3DKMTSetVidPnSourceOwner(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "HND-07");
	assert_int_equal(check(&s, 0), STATUS_SUCCESS);
	show_stop(&s);
}

static void own_02_a_source_that_does_not_exist_is_refused(void **state)
{
	const D3DKMT_VIDPNSOURCEOWNER_TYPE types[] = {D3DKMT_VIDPNSOURCEOWNER_EXCLUSIVE,
						      D3DKMT_VIDPNSOURCEOWNER_EXCLUSIVE};
	const D3DDDI_VIDEO_PRESENT_SOURCE_ID ids[] = {0, 2};
	struct show s;

	show_start(&s, state, NULL);
	/* all or nothing: source 0 stays unowned */
	const D3DKMT_SETVIDPNSOURCEOWNER args = {
		.hDevice = s.device, .pType = types, .pVidPnSourceId = ids, .VidPnSourceCount = 2};
	assert_int_equal(D3DKMTSetVidPnSourceOwner(&args),
			 STATUS_GRAPHICS_INVALID_VIDEO_PRESENT_SOURCE);
	world_expect_finding(&s.w, "OWN-02");
	assert_int_equal(check(&s, 0), STATUS_SUCCESS);
	assert_int_equal(check(&s, 2), STATUS_GRAPHICS_INVALID_VIDEO_PRESENT_SOURCE);
	world_expect_finding(&s.w, "OWN-02");
	assert_int_equal(check(&s, UINT32_MAX), STATUS_GRAPHICS_INVALID_VIDEO_PRESENT_SOURCE);
	world_expect_finding(&s.w, "OWN-02");
	show_stop(&s);
}

static void own_03_a_source_has_one_owner(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	const D3DKMT_HANDLE other = second_device(&s);
	assert_int_equal(own(s.device, SHARED, 0), STATUS_SUCCESS);
	assert_int_equal(own(s.device, SHARED, 0), STATUS_SUCCESS); /* it has it already */
	assert_int_equal(own(other, SHARED, 0), STATUS_GRAPHICS_VIDPN_SOURCE_IN_USE);
	assert_int_equal(own(other, UNOWNED, 0), STATUS_SUCCESS); /* it releases nothing */
	assert_int_equal(own(other, SHARED, 0), STATUS_GRAPHICS_VIDPN_SOURCE_IN_USE);
	assert_int_equal(own(other, SHARED, 1), STATUS_SUCCESS);
	/* a shared owner yields to an exclusive one, an exclusive one does not */
	assert_int_equal(own(other, EXCLUSIVE, 0), STATUS_SUCCESS);
	assert_int_equal(own(s.device, SHARED, 0), STATUS_GRAPHICS_VIDPN_SOURCE_IN_USE);
	assert_int_equal(own(s.device, EXCLUSIVE, 0), STATUS_GRAPHICS_VIDPN_SOURCE_IN_USE);
	assert_int_equal(release(s.device), STATUS_SUCCESS); /* its sources only */
	assert_int_equal(check(&s, 0), STATUS_GRAPHICS_PRESENT_OCCLUDED);
	/* the end of the owner releases both */
	destroy(other);
	assert_int_equal(own(s.device, EXCLUSIVE, 0), STATUS_SUCCESS);
	assert_int_equal(own(s.device, EXCLUSIVE, 1), STATUS_SUCCESS);
	assert_int_equal(own(s.device, UNOWNED, 0), STATUS_SUCCESS);
	assert_int_equal(check(&s, 0), STATUS_SUCCESS);
	assert_int_equal(release(s.device), STATUS_SUCCESS);
	assert_int_equal(check(&s, 1), STATUS_SUCCESS);
	show_stop(&s);
}

static void own_04_other_types_are_refused(void **state)
{
	static const uint32_t types[] = {EXCLUSIVE_GDI, EMULATED, 5, UINT32_MAX};
	struct show s;

	show_start(&s, state, NULL);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		assert_int_equal(own(s.device, types[i], 0), STATUS_INVALID_PARAMETER);
		world_expect_finding(&s.w, "OWN-04");
	}
	assert_int_equal(check(&s, 0), STATUS_SUCCESS);
	show_stop(&s);
}

static void own_05_an_exclusive_owner_occludes(void **state)
{
	struct show s;

	show_start(&s, state, NULL);
	assert_int_equal(own(s.device, SHARED, 0), STATUS_SUCCESS);
	assert_int_equal(check(&s, 0), STATUS_SUCCESS);
	assert_int_equal(own(s.device, EXCLUSIVE, 0), STATUS_SUCCESS);
	assert_int_equal(check(&s, 0), STATUS_GRAPHICS_PRESENT_OCCLUDED);
	assert_int_equal(check(&s, 1), STATUS_SUCCESS);
	assert_int_equal(D3DKMTCheckVidPnExclusiveOwnership(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "HND-11");
	const D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP bad = {.hAdapter = s.device};
	assert_int_equal(D3DKMTCheckVidPnExclusiveOwnership(&bad), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "HND-07");
	show_stop(&s);
}

static void own_07_multisample_methods_are_not_built(void **state)
{
	D3DKMT_MULTISAMPLEMETHOD methods[2];
	struct show s;

	show_start(&s, state, NULL);
	memset(methods, 0xA5, sizeof(methods));
	D3DKMT_GETMULTISAMPLEMETHODLIST args = {.hAdapter = s.adapter,
						.Width = 640,
						.Height = 480,
						.pMethodList = methods,
						.MethodCount = 2};
	assert_int_equal(D3DKMTGetMultisampleMethodList(&args), STATUS_NOT_SUPPORTED);
	assert_int_equal(args.MethodCount, 2);
	assert_int_equal(methods[0].NumSamples, 0xA5A5A5A5);
	args.VidPnSourceId = 2;
	assert_int_equal(D3DKMTGetMultisampleMethodList(&args),
			 STATUS_GRAPHICS_INVALID_VIDEO_PRESENT_SOURCE);
	world_expect_finding(&s.w, "OWN-02");
	args.hAdapter = 0;
	assert_int_equal(D3DKMTGetMultisampleMethodList(&args), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "HND-07");
	assert_int_equal(D3DKMTGetMultisampleMethodList(NULL), STATUS_INVALID_PARAMETER);
	world_expect_finding(&s.w, "HND-11");
	show_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(own_01_arrays_are_given_as_their_count_says),
		ON_BOTH(own_02_a_source_that_does_not_exist_is_refused),
		ON_BOTH(own_03_a_source_has_one_owner),
		ON_BOTH(own_04_other_types_are_refused),
		ON_BOTH(own_05_an_exclusive_owner_occludes),
		ON_BOTH(own_07_multisample_methods_are_not_built),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
