/* SPDX-License-Identifier: MIT */
/* For wrappers around softgpu: copies its table, which is one of 1.3 and ends there. */
#ifndef VMM_TESTS_SOFTGPU_TABLE_H
#define VMM_TESTS_SOFTGPU_TABLE_H

#include <support/test.h>

#include <stddef.h>
#include <string.h>

#include <dispmprt.h>

static inline DRIVER_INITIALIZATION_DATA softgpu_table(const DRIVER_INITIALIZATION_DATA *data)
{
	DRIVER_INITIALIZATION_DATA table = {0};

	assert_true(data->Version < DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	memcpy(&table, data, offsetof(DRIVER_INITIALIZATION_DATA, DxgkDdiRenderGdi));
	return table;
}

#endif
