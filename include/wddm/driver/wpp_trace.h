/* SPDX-License-Identifier: MIT */
/*
 * WPP tracing for drivers: what the .tmh files that vidmm-cc generates use. Messages of the levels
 * critical, error and warning become debug output of the component IHVVIDEO; the others are
 * dropped. Tracing needs no start: WPP_INIT_TRACING and WPP_CLEANUP do nothing.
 * Source: the WPP software tracing pages.
 */
#ifndef WDDM_WPP_TRACE_H
#define WDDM_WPP_TRACE_H

#include <ntddk.h>

#ifdef __cplusplus
/* In C++ a format may be a wide string. */
#define WddmTraceMessage(level, function, ...) WddmTrace(level, function, __VA_ARGS__)
extern "C++" {
template <typename... Values>
static inline VOID WddmTrace(ULONG Level, const char *Function, const char *Format,
			     Values... values)
{
	(WddmTraceMessage)(Level, Function, Format, values...);
}
template <typename... Values>
static inline VOID WddmTrace(ULONG Level, const char *Function, const WCHAR *Format,
			     Values... values)
{
	WddmTraceMessageWide(Level, Function, Format, values...);
}
}
#endif

#ifndef TRACE_LEVEL_NONE
#define TRACE_LEVEL_NONE        0
#define TRACE_LEVEL_CRITICAL    1
#define TRACE_LEVEL_FATAL       1
#define TRACE_LEVEL_ERROR       2
#define TRACE_LEVEL_WARNING     3
#define TRACE_LEVEL_INFORMATION 4
#define TRACE_LEVEL_VERBOSE     5
#endif

/* How the recorder of WPP buffers messages: no member has an effect. */
typedef struct _RECORDER_CONFIGURE_PARAMS {
	ULONG Size;
	BOOLEAN CreateDefaultLog;
	ULONG BufferSize, ErrorPartitionSize;
} RECORDER_CONFIGURE_PARAMS, *PRECORDER_CONFIGURE_PARAMS;
static inline VOID RECORDER_CONFIGURE_PARAMS_INIT(PRECORDER_CONFIGURE_PARAMS Params)
{
	RtlZeroMemory(Params, sizeof(*Params));
	Params->Size = sizeof(*Params);
}
#define WppRecorderConfigure(params) ((void)(params))

#ifndef WPP_INIT_TRACING
#define WPP_INIT_TRACING(...) ((void)0)
#define WPP_CLEANUP(...)      ((void)0)
#define WPP_SYSTEMCONTROL(...)
/* The driver may assign whether a flag is recorded; the value has no effect. */
#define WPP_RECORDER_LEVEL_FILTER(flag) (*WddmIgnoredBoolean())
static inline BOOLEAN *WddmIgnoredBoolean(void)
{
	static BOOLEAN ignored;

	return &ignored;
}
#define DoTraceMessage(flags, ...)                  TraceEvents(4, flags, __VA_ARGS__)
#define DoTraceLevelMessage(log, level, flags, ...) WddmTraceMessage(level, __func__, __VA_ARGS__)
#define TraceEvents(level, flags, ...)              WddmTraceMessage(level, __func__, __VA_ARGS__)
#define WPP_LEVEL_ENABLED(flag)                     0
#define WPP_FLAG_LEVEL_ENABLED(flag, level)         0
#define WPP_LEVEL_FLAGS_ENABLED(level, flag)        0
#endif

#endif
