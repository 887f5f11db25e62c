/* SPDX-License-Identifier: MIT */
/*
 * Findings and reasons of DXCore. In-process they are events of the calling process. An
 * out-of-process client has no event stream; there they are printed if VIDMM_DEBUG asks for it.
 * (DXC-29)
 */
#include "dxcore/dxcore_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/kmt_route.h"
#include "object/object.h"
#include "observe/observe.h"

enum { TEXT_BYTES = 256 };

/* As the host prints its own. */
static void print_if_asked(const char *kind, const char *text)
{
	const char *debug = secure_getenv("VIDMM_DEBUG");

	if (debug && !strcmp(debug, "1"))
		fprintf(stderr, "vidmm: %s: %s\n", kind, text);
}

HRESULT vmm_dxcore_refuse_rule(HRESULT result, const char *rule, const char *format, ...)
{
	const struct vmm_process *process = vmm_kmt_route_process();
	char text[TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (process)
		vmm_finding(process->world->observe, rule, process->id, 0, "%s", text);
	else
		print_if_asked(rule, text);
	return result;
}

HRESULT vmm_dxcore_refuse_reason(HRESULT result, const char *rule, const char *format, ...)
{
	const struct vmm_process *process = vmm_kmt_route_process();
	char text[TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (process)
		vmm_reason(process->world->observe, result, process->id, 0, "%s: %s", rule, text);
	else
		print_if_asked(rule, text);
	return result;
}

HRESULT vmm_dxcore_serve(const struct vmm_dxcore_interfaces *interfaces, void *self,
			 _Atomic uint32_t *references, const GUID *riid, void **object)
{
	HRESULT result = vmm_dxcore_check_out(interfaces->function, riid, object);

	if (FAILED(result))
		return result;
	for (uint32_t i = 0; i < interfaces->count && !*object; i++)
		if (vmm_dxcore_is_guid(riid, &interfaces->id[i]))
			*object = self;
	if (!*object)
		return E_NOINTERFACE;
	atomic_fetch_add(references, 1);
	return S_OK;
}

HRESULT vmm_dxcore_check_out(const char *function, const GUID *riid, void **object)
{
	if (object)
		*object = NULL;
	if (object && riid)
		return S_OK;
	return vmm_dxcore_refuse_rule(E_POINTER, "DXC-02", "%s: %s is NULL", function,
				      object ? "riid" : "the pointer to the interface");
}
