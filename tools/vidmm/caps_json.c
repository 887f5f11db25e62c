/* SPDX-License-Identifier: MIT */
/*
 * The report as JSON. The schema is in docs/caps.md: keys are added, never renamed or removed.
 * Sizes are integers. Addresses are strings, because they use all 64 bits.
 */
#include <inttypes.h>
#include <jansson.h>

#include "caps.h"
#include "caps_names.h"
#include "json_text.h"
#include "status_names.h"

#define SCHEMA_VERSION 1

static json_t *hex(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *name_or_null(const char *name)
{
	return name ? json_string(name) : json_null();
}

/* Null for a text that is not UTF-8: a file name may contain any bytes. */
static json_t *text_of(const char *text)
{
	json_t *string = text ? json_string(text) : NULL;

	return string ? string : json_null();
}

static json_t *flags_of(const struct flag_names *flags, uint32_t value)
{
	json_t *array = json_array();
	char reserved[16];
	unsigned bit;

	for (bit = 0; bit < 32; bit++) {
		if (value & (uint32_t)1 << bit)
			json_array_append_new(array, json_string(flag_name(flags, bit, reserved)));
	}
	return array;
}

static json_t *flag_word(const struct flag_names *flags, uint32_t value)
{
	return json_pack("{s:o, s:o}", "value", hex(value), "flags", flags_of(flags, value));
}

static json_t *settings_of(const struct caps_options *options)
{
	json_t *object = json_object();
	unsigned i;

	for (i = 0; i < options->setting_count; i++)
		json_object_set_new(object, options->settings[i].name,
				    integer(options->settings[i].value));
	return object;
}

static json_t *bars_of(const struct vidmm_adapter_report *report)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < report->bar_count; i++)
		json_array_append_new(array,
				      json_pack("{s:o, s:o}", "physical_address",
						hex(report->bar[i].physical_address), "size_bytes",
						integer(report->bar[i].size_bytes)));
	return array;
}

static json_t *cap_of(const struct cap *cap, uint64_t value)
{
	switch (cap->kind) {
	case CAP_ADDRESS:
		return hex(value);
	case CAP_SCHEDULING:
		return flag_word(&scheduling_flags, (uint32_t)value);
	case CAP_MEMORY:
		return flag_word(&memory_flags, (uint32_t)value);
	case CAP_WDDM:
		return hex(value);
	case CAP_BOOLEAN:
		return json_boolean(value != 0);
	default:
		return integer(value);
	}
}

/* Members that the structure of the interface version lacks are null. */
static json_t *caps_of(const struct vidmm_adapter_report *report)
{
	json_t *object;
	unsigned i;

	if (!report->driver_caps_bytes)
		return json_null();
	object = json_pack("{s:o}", "structure_bytes", integer(report->driver_caps_bytes));
	for (i = 0; i < caps_count; i++) {
		const struct cap *cap = &caps_table[i];
		bool has = cap->since_bytes <= report->driver_caps_bytes;

		json_object_set_new(object, cap->name,
				    has ? cap_of(cap, cap_value(cap, report)) : json_null());
	}
	return object;
}

static json_t *nodes_of(const struct vidmm_adapter_report *report)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < report->node_count; i++)
		json_array_append_new(
			array, json_pack("{s:o, s:b, s:o}", "node", integer(i), "paging",
					 i == (report->node_count > 1 ? report->paging_node : 0),
					 "packets", integer(report->node_depth)));
	return array;
}

static json_t *bank_ends_of(const struct vidmm_segment_report *segment)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < segment->bank_end_count; i++)
		json_array_append_new(array, integer(segment->bank_end[i]));
	return array;
}

static json_t *segment_of(const struct vidmm_adapter_report *report, uint32_t index)
{
	const struct vidmm_segment_report *s = &report->segment[index];
	uint32_t ignored = s->effective_flags ? s->flags & ~s->effective_flags : 0;

	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "id",
			 integer(index + 1), "kind",
			 s->flags & 0x1   ? "aperture"
			 : s->flags & 0x2 ? "agp"
					  : "memory",
			 "size_bytes", integer(s->size_bytes), "commit_limit_bytes",
			 integer(s->commit_limit_bytes), "base_address", hex(s->base_address),
			 "cpu_translated_address", hex(s->cpu_translated_address),
			 "system_memory_end_address", hex(s->system_memory_end_address), "flags",
			 flag_word(&segment_flags, s->flags), "ignored_flags",
			 flags_of(&segment_flags, ignored), "bank_count", integer(s->bank_count),
			 "bank_ends", bank_ends_of(s), "paging_buffer",
			 report->paging_buffer_segment_id == index + 1);
}

static json_t *segments_of(const struct vidmm_adapter_report *report)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < report->described_count; i++)
		json_array_append_new(array, segment_of(report, i));
	return array;
}

static json_t *paging_buffer_of(const struct vidmm_adapter_report *report)
{
	if (!report->described_count)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "segment_id", integer(report->paging_buffer_segment_id),
			 "size_bytes", integer(report->paging_buffer_size), "private_data_bytes",
			 integer(report->paging_buffer_private_data_size));
}

static json_t *findings_of(const struct caps_result *result)
{
	json_t *array = json_array();
	unsigned i;

	for (i = 0; i < result->complaint_count; i++) {
		const struct caps_complaint *c = &result->complaints[i];

		if (c->type != VIDMM_EVENT_REASON)
			json_array_append_new(
				array, json_pack("{s:o, s:s, s:o}", "rule",
						 name_or_null(c->rule[0] ? c->rule : NULL), "text",
						 c->text, "count", integer(c->count)));
	}
	return array;
}

static json_t *reasons_of(const struct caps_result *result)
{
	json_t *array = json_array();
	unsigned i;

	for (i = 0; i < result->complaint_count; i++) {
		const struct caps_complaint *c = &result->complaints[i];

		if (c->type == VIDMM_EVENT_REASON)
			json_array_append_new(array, json_pack("{s:o, s:o, s:s, s:o}", "status",
							       hex(c->status), "status_name",
							       name_or_null(status_name(c->status)),
							       "text", c->text, "count",
							       integer(c->count)));
	}
	return array;
}

static json_t *interface_of(const struct vidmm_adapter_report *report)
{
	if (!report->interface_version)
		return json_null();
	return json_pack("{s:o, s:s}", "value", hex(report->interface_version), "wddm",
			 interface_name(report->interface_version));
}

bool caps_json(FILE *file, const struct caps_options *options, const struct caps_result *result)
{
	const struct vidmm_adapter_report *report = &result->report;
	enum replay_status verdict = caps_verdict(result);
	json_t *top = json_object();

	json_object_set_new(top, "schema_version", json_integer(SCHEMA_VERSION));
	json_object_set_new(top, "vidmm_version", json_string(vidmm_version()));
	json_object_set_new(top, "driver", json_string(options->driver ? "file" : "softgpu"));
	json_object_set_new(top, "driver_file", text_of(options->driver));
	json_object_set_new(top, "device_file", text_of(options->device));
	json_object_set_new(top, "backend",
			    json_string(options->host_kind == VIDMM_HOST_SIM ? "sim" : "linux"));
	json_object_set_new(top, "settings", settings_of(options));
	json_object_set_new(top, "bars", bars_of(report));
	json_object_set_new(top, "interface", interface_of(report));
	json_object_set_new(top, "driver_caps", caps_of(report));
	json_object_set_new(top, "nodes", nodes_of(report));
	json_object_set_new(top, "segment_count", integer(report->segment_count));
	json_object_set_new(top, "segments", segments_of(report));
	json_object_set_new(top, "paging_buffer", paging_buffer_of(report));
	json_object_set_new(top, "findings", findings_of(result));
	json_object_set_new(top, "reasons", reasons_of(result));
	json_object_set_new(top, "started", json_boolean(result->status >= 0));
	json_object_set_new(top, "step", json_string(step_key(report->step)));
	json_object_set_new(top, "status", hex((uint32_t)result->status));
	json_object_set_new(top, "status_name",
			    name_or_null(status_name((uint32_t)result->status)));
	json_object_set_new(top, "exit_code", json_integer(verdict));
	return json_write(file, top);
}
