/* SPDX-License-Identifier: MIT */
/*
 * Findings and reasons: the two event types with a text. The text is formatted into a bounded
 * buffer on the caller's stack even without subscribers, because it is part of the stream's hash.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "observe/observe_internal.h"

static const char cut_mark[] = "...";

/* Appends at text + used. A text that does not fit ends in "..." to show that it was cut. */
static void append_text(char *text, size_t used, const char *format, va_list args)
{
	size_t space = VMM_OBSERVE_TEXT_BYTES - used;
	int length = vsnprintf(text + used, space, format, args);

	if (length < 0)
		text[used] = '\0';
	else if ((size_t)length >= space)
		memcpy(text + VMM_OBSERVE_TEXT_BYTES - sizeof(cut_mark), cut_mark,
		       sizeof(cut_mark));
}

static void emit_finding(struct vmm_observe *observe, const char *rule, uint32_t process,
			 uint32_t object, const char *format, va_list args)
{
	struct vidmm_event event = {
		.type = VIDMM_EVENT_FINDING, .process = process, .object = object};
	char text[VMM_OBSERVE_TEXT_BYTES];
	int used = snprintf(text, sizeof(text), "%s: ", rule);

	vmm_assert(used > 0 && used < 64); /* rule ids are short constants of the library */
	append_text(text, (size_t)used, format, args);
	vmm_observe_emit(observe, &event, text);
}

static void emit_reason(struct vmm_observe *observe, vmm_status status, uint32_t process,
			uint32_t object, const char *format, va_list args)
{
	struct vidmm_event event = {.type = VIDMM_EVENT_REASON,
				    .process = process,
				    .object = object,
				    .arg = {(uint32_t)status}};
	char text[VMM_OBSERVE_TEXT_BYTES];

	append_text(text, 0, format, args);
	vmm_observe_emit(observe, &event, text);
}

void vmm_finding(struct vmm_observe *observe, const char *rule, uint32_t process, uint32_t object,
		 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	emit_finding(observe, rule, process, object, format, args);
	va_end(args);
}

void vmm_reason(struct vmm_observe *observe, vmm_status status, uint32_t process, uint32_t object,
		const char *format, ...)
{
	va_list args;

	va_start(args, format);
	emit_reason(observe, status, process, object, format, args);
	va_end(args);
}

vmm_status vmm_refuse_rule(struct vmm_observe *observe, vmm_status status, const char *rule,
			   uint32_t process, uint32_t object, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	emit_finding(observe, rule, process, object, format, args);
	va_end(args);
	return status;
}

vmm_status vmm_refuse_reason(struct vmm_observe *observe, vmm_status status, uint32_t process,
			     uint32_t object, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	emit_reason(observe, status, process, object, format, args);
	va_end(args);
	return status;
}
