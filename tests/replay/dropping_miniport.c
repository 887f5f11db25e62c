/* SPDX-License-Identifier: MIT */
#include <stdbool.h>

#include <dispmprt.h>
#include <vidmm/softgpu.h>

#include "dropping_miniport.h"

unsigned dropping_every;
unsigned dropping_dropped;

static bool wrapping; /* softgpu is being entered through dropping_driver_entry */
static unsigned seen;
static PDXGKDDI_BUILDPAGINGBUFFER build_paging_buffer;

NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);

static NTSTATUS APIENTRY build_some(IN_CONST_HANDLE adapter,
				    IN_PDXGKARG_BUILDPAGINGBUFFER arguments)
{
	if (arguments->Operation == DXGK_OPERATION_TRANSFER && dropping_every &&
	    ++seen % dropping_every == 0) {
		dropping_dropped++;
		return STATUS_SUCCESS;
	}
	return build_paging_buffer(adapter, arguments);
}

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	if (wrapping) {
		build_paging_buffer = data->DxgkDdiBuildPagingBuffer;
		data->DxgkDdiBuildPagingBuffer = build_some;
	}
	return __real_DxgkInitialize(driver, path, data);
}

int32_t dropping_driver_entry(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *path)
{
	int32_t status;

	seen = dropping_dropped = 0;
	wrapping = true;
	status = softgpu_driver_entry(driver, path);
	wrapping = false;
	return status;
}
