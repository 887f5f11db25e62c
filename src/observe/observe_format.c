/* SPDX-License-Identifier: MIT */
/*
 * Formats one event as one line. The form is stable: fields are key=value in a fixed order per
 * type. An argument without a name for its type appears only if it is not 0. Text from outside
 * cannot break the line.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "observe/observe.h"

enum form { FORM_ABSENT, FORM_NUMBER, FORM_HEX, FORM_HEX32 };

struct field {
	const char *name;
	enum form form;
};

static const struct field fields[VIDMM_EVENT_TYPE_COUNT][4] = {
	[VIDMM_EVENT_DOOR] = {{"status", FORM_HEX32},
			      {"elements", FORM_NUMBER},
			      {"ns", FORM_NUMBER},
			      {"flags", FORM_HEX}},
	[VIDMM_EVENT_DDI] = {{"status", FORM_HEX32}},
	[VIDMM_EVENT_CALLBACK] = {{"status", FORM_HEX32}},
	[VIDMM_EVENT_CREATE] = {{"bytes", FORM_NUMBER},
				{"segments", FORM_HEX},
				{"flags", FORM_HEX}},
	[VIDMM_EVENT_DESTROY] = {{"bytes", FORM_NUMBER},
				 {"segments", FORM_HEX},
				 {"flags", FORM_HEX}},
	[VIDMM_EVENT_PAGING] = {{"bytes", FORM_NUMBER},
				{"from", FORM_NUMBER},
				{"to", FORM_NUMBER},
				{"address", FORM_HEX}},
	[VIDMM_EVENT_RESIDENCY] = {{"bytes", FORM_NUMBER},
				   {"from", FORM_NUMBER},
				   {"to", FORM_NUMBER},
				   {"offset", FORM_HEX}},
	[VIDMM_EVENT_WAIT] = {{"ns", FORM_NUMBER}, {"node", FORM_NUMBER}, {"number", FORM_NUMBER}},
	[VIDMM_EVENT_SUBMIT] = {{"references", FORM_NUMBER},
				{"patches", FORM_NUMBER},
				{"bytes", FORM_NUMBER},
				{"number", FORM_NUMBER}},
	[VIDMM_EVENT_QUEUE] = {{"fence", FORM_NUMBER},
			       {"node", FORM_NUMBER},
			       {"start", FORM_NUMBER},
			       {"end", FORM_NUMBER}},
	[VIDMM_EVENT_FENCE] = {{"fence", FORM_NUMBER},
			       {"node", FORM_NUMBER},
			       {"retired", FORM_NUMBER},
			       {"complete", FORM_NUMBER}},
	[VIDMM_EVENT_LOCK] = {{"flags", FORM_HEX},
			      {"waited_ns", FORM_NUMBER},
			      {"bytes", FORM_NUMBER},
			      {"old", FORM_HEX32}},
	[VIDMM_EVENT_RENAME] = {{"old", FORM_HEX32},
				{"instances", FORM_NUMBER},
				{"bytes", FORM_NUMBER},
				{"busy", FORM_NUMBER}},
	[VIDMM_EVENT_OFFER] = {{"bytes", FORM_NUMBER}, {"priority", FORM_NUMBER}},
	[VIDMM_EVENT_RECLAIM] = {{"bytes", FORM_NUMBER}, {"discarded", FORM_NUMBER}},
	[VIDMM_EVENT_DISCARD] = {{"bytes", FORM_NUMBER}},
	[VIDMM_EVENT_SPLIT] = {{"offset", FORM_NUMBER}, {"patch", FORM_NUMBER}},
	[VIDMM_EVENT_REASON] = {{"status", FORM_HEX32}},
	[VIDMM_EVENT_FATAL] = {{"code", FORM_HEX}},
	[VIDMM_EVENT_FLUSH] = {{"bytes", FORM_NUMBER}, {"segment", FORM_NUMBER}},
	[VIDMM_EVENT_RANGE] = {{"range", FORM_NUMBER}, {"for", FORM_HEX}},
	[VIDMM_EVENT_SYNC] = {{"object", FORM_NUMBER},
			      {"value", FORM_NUMBER},
			      {"now", FORM_NUMBER},
			      {"handle", FORM_HEX32}},
	[VIDMM_EVENT_EXTENT] = {{"bytes", FORM_NUMBER},
				{"at", FORM_HEX},
				{"segment", FORM_NUMBER},
				{"offset", FORM_HEX}},
	[VIDMM_EVENT_SEGMENT] = {{"bytes", FORM_NUMBER},
				 {"base", FORM_HEX},
				 {"flags", FORM_HEX},
				 {"adapter", FORM_HEX}},
	[VIDMM_EVENT_VICTIM] = {{"for", FORM_HEX32},
				{"of", FORM_NUMBER},
				{"bytes", FORM_NUMBER},
				{"residents", FORM_NUMBER}},
	[VIDMM_EVENT_RECOVERY] = {{"code", FORM_HEX},
				  {"node", FORM_NUMBER},
				  {"fence", FORM_NUMBER},
				  {"ns", FORM_NUMBER}},
};

/* What the arguments b, c and d of VIDMM_EVENT_DDI are. */
static const struct field ddi_fields[VIDMM_DDI_LAST + 1][3] = {
	[VIDMM_DDI_QUERY_ADAPTER_INFO] = {{"type", FORM_NUMBER}, {"bytes", FORM_NUMBER}},
	[VIDMM_DDI_CREATE_DEVICE] = {{"flags", FORM_HEX}},
	[VIDMM_DDI_CREATE_CONTEXT] = {{"node", FORM_NUMBER}, {"flags", FORM_HEX}},
	[VIDMM_DDI_CREATE_ALLOCATION] = {{"count", FORM_NUMBER}, {"flags", FORM_HEX}},
	[VIDMM_DDI_DESTROY_ALLOCATION] = {{"count", FORM_NUMBER}, {"resource", FORM_NUMBER}},
	[VIDMM_DDI_OPEN_ALLOCATION] = {{"count", FORM_NUMBER}, {"flags", FORM_HEX}},
	[VIDMM_DDI_CLOSE_ALLOCATION] = {{"count", FORM_NUMBER}},
	[VIDMM_DDI_RENDER] = {{"command_bytes", FORM_NUMBER},
			      {"dma_bytes", FORM_NUMBER},
			      {"patches", FORM_NUMBER}},
	[VIDMM_DDI_PATCH] = {{"fence", FORM_NUMBER},
			     {"start", FORM_NUMBER},
			     {"patches", FORM_NUMBER}},
	[VIDMM_DDI_SUBMIT_COMMAND] = {{"fence", FORM_NUMBER},
				      {"start", FORM_NUMBER},
				      {"end", FORM_NUMBER}},
	[VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL] = {{"fence", FORM_NUMBER},
					      {"address", FORM_HEX},
					      {"bytes", FORM_NUMBER}},
	[VIDMM_DDI_BUILD_PAGING_BUFFER] = {{"operation", FORM_NUMBER},
					   {"dma_bytes", FORM_NUMBER},
					   {"multipass", FORM_NUMBER}},
	[VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE] = {{"range", FORM_NUMBER},
					       {"private", FORM_HEX},
					       {"bytes", FORM_NUMBER}},
	[VIDMM_DDI_RELEASE_SWIZZLING_RANGE] = {{"range", FORM_NUMBER}, {"private", FORM_HEX}},
	[VIDMM_DDI_QUERY_CURRENT_FENCE] = {{"node", FORM_NUMBER}, {"fence", FORM_NUMBER}},
	[VIDMM_DDI_PREEMPT_COMMAND] = {{"fence", FORM_NUMBER}, {"node", FORM_NUMBER}},
	[VIDMM_DDI_CANCEL_COMMAND] = {{"start", FORM_NUMBER}, {"end", FORM_NUMBER}},
	[VIDMM_DDI_COLLECT_DBG_INFO] = {{"code", FORM_HEX}},
	[VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP] = {{"node", FORM_NUMBER}, {"mask", FORM_HEX}},
	[VIDMM_DDI_RESET_ENGINE] = {{"node", FORM_NUMBER}, {"aborted", FORM_NUMBER}},
	[VIDMM_DDI_GET_STANDARD_ALLOCATION_DRIVER_DATA] = {{"type", FORM_NUMBER},
							   {"bytes", FORM_NUMBER}},
	[VIDMM_DDI_DESCRIBE_ALLOCATION] = {{"width", FORM_NUMBER},
					   {"height", FORM_NUMBER},
					   {"format", FORM_NUMBER}},
	[VIDMM_DDI_VALIDATE_UPDATE_ALLOCATION_PROPERTY] = {{"properties", FORM_HEX},
							   {"segments", FORM_HEX},
							   {"preferred", FORM_HEX}},
	[VIDMM_DDI_MAP_CPU_HOST_APERTURE] = {{"segment", FORM_NUMBER},
					     {"pages", FORM_NUMBER},
					     {"first", FORM_NUMBER}},
	[VIDMM_DDI_UNMAP_CPU_HOST_APERTURE] = {{"segment", FORM_NUMBER},
					       {"pages", FORM_NUMBER},
					       {"first", FORM_NUMBER}},
	[VIDMM_DDI_PRESENT] = {{"flags", FORM_HEX},
			       {"dma_bytes", FORM_NUMBER},
			       {"multipass", FORM_NUMBER}},
	[VIDMM_DDI_PRESENT_TO_HW_QUEUE] = {{"flags", FORM_HEX},
					   {"dma_bytes", FORM_NUMBER},
					   {"multipass", FORM_NUMBER}},
	[VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS] = {{"source", FORM_NUMBER},
						{"segment", FORM_NUMBER},
						{"address", FORM_HEX}},
	[VIDMM_DDI_SET_VIDPN_SOURCE_VISIBILITY] = {{"source", FORM_NUMBER},
						   {"visible", FORM_NUMBER}},
	[VIDMM_DDI_ESCAPE] = {{"flags", FORM_HEX}, {"bytes", FORM_NUMBER}},
	[VIDMM_DDI_GET_NODE_METADATA] = {{"node", FORM_NUMBER}, {"flags", FORM_HEX}},
	[VIDMM_DDI_CREATE_HW_CONTEXT] = {{"node", FORM_NUMBER}, {"flags", FORM_HEX}},
	[VIDMM_DDI_CREATE_HW_QUEUE] = {{"flags", FORM_HEX}},
	[VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE] = {{"fence", FORM_NUMBER}, {"bytes", FORM_NUMBER}},
	[VIDMM_DDI_SETUP_PRIORITY_BANDS] = {{"percent", FORM_NUMBER}},
	[VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES] = {{"band", FORM_NUMBER},
							 {"priority", FORM_NUMBER}},
	[VIDMM_DDI_SUSPEND_CONTEXT] = {{"fence", FORM_NUMBER}},
	[VIDMM_DDI_RESET_HW_ENGINE] = {{"node", FORM_NUMBER}},
	[VIDMM_DDI_RESUME_HW_ENGINE] = {{"node", FORM_NUMBER}},
	[VIDMM_DDI_CREATE_PERIODIC_FRAME_NOTIFICATION] = {{"target", FORM_NUMBER},
							  {"time_100ns", FORM_NUMBER},
							  {"id", FORM_NUMBER}},
	[VIDMM_DDI_GET_ROOT_PAGE_TABLE_SIZE] = {{"asked", FORM_NUMBER},
						{"entries", FORM_NUMBER},
						{"bytes", FORM_NUMBER}},
	[VIDMM_DDI_SET_ROOT_PAGE_TABLE] = {{"segment", FORM_NUMBER},
					   {"offset", FORM_HEX},
					   {"entries", FORM_NUMBER}},
	[VIDMM_DDI_CALIBRATE_GPU_CLOCK] = {{"node", FORM_NUMBER},
					   {"engine", FORM_NUMBER},
					   {"hz", FORM_NUMBER}},
	[VIDMM_DDI_VALIDATE_SUBMIT_COMMAND] = {{"commands", FORM_HEX},
					       {"bytes", FORM_NUMBER},
					       {"private_bytes", FORM_NUMBER}},
};

static struct field field_of(const struct vidmm_event *event, unsigned index)
{
	static const struct field none;

	if (event->type == VIDMM_EVENT_DDI && index && event->reason <= VIDMM_DDI_LAST)
		return ddi_fields[event->reason][index - 1];
	return event->type < VIDMM_EVENT_TYPE_COUNT ? fields[event->type][index] : none;
}

struct line {
	char *buffer;
	size_t used, size_bytes;
};

static void append(struct line *line, const char *format, ...) VMM_PRINTF(2, 3);
static void append(struct line *line, const char *format, ...)
{
	size_t space = line->size_bytes - line->used;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->buffer + line->used, space, format, args);
	va_end(args);
	if (length > 0)
		line->used += (size_t)length < space ? (size_t)length : space - 1;
}

static void append_argument(struct line *line, struct field field, unsigned index, uint64_t value)
{
	switch (field.form) {
	case FORM_ABSENT:
		if (value)
			append(line, " arg%u=0x%" PRIx64, index, value);
		break;
	case FORM_NUMBER:
		append(line, " %s=%" PRIu64, field.name, value);
		break;
	case FORM_HEX:
		append(line, " %s=0x%" PRIx64, field.name, value);
		break;
	case FORM_HEX32:
		append(line, " %s=0x%08" PRIx64, field.name, value);
		break;
	}
}

static void append_text(struct line *line, const char *text)
{
	append(line, " : ");
	for (; *text && line->used + 1 < line->size_bytes; text++) {
		unsigned char c = (unsigned char)*text;

		line->buffer[line->used++] = c < 0x20 || c == 0x7F ? '?' : (char)c;
	}
	line->buffer[line->used] = '\0';
}

size_t vmm_observe_format(const struct vidmm_event *event, const char *text, char *buffer,
			  size_t size_bytes)
{
	struct line line = {.buffer = buffer, .size_bytes = size_bytes};
	const char *reason = vmm_observe_reason_name(event->type, event->reason);

	if (!size_bytes)
		return 0;
	append(&line, "#%" PRIu64 " %" PRIu64 "ns p%" PRIu32 " %s", event->sequence, event->time_ns,
	       event->process, vmm_observe_type_name(event->type));
	if (*reason)
		append(&line, "/%s", reason);
	else if (event->reason)
		append(&line, "/%u", event->reason);
	if (event->object)
		append(&line, " 0x%08" PRIx32, event->object);
	for (unsigned i = 0; i < 4; i++)
		append_argument(&line, field_of(event, i), i, event->arg[i]);
	if (text && *text)
		append_text(&line, text);
	return line.used;
}
