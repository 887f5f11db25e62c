/* SPDX-License-Identifier: MIT */
/*
 * The displays: what each source shows, from which address on, and the monitor that is plugged into it. A thread stands
 * in for the hardware: at the beginnings of frames it takes over what was set, reads the picture and raises CRTC_VSYNC.
 * It sleeps while there is nothing new to be seen.
 */
#ifndef SOFTGPU_DISPLAY_H
#define SOFTGPU_DISPLAY_H

#include <ntddk.h>

#include <stdint.h>

#define SOFTGPU_SOURCES_MAX 4u

/* What an allocation holds, for who looks at it as a picture. */
struct softgpu_picture {
	uint32_t width, height, pitch_bytes; /* width 0: none */
};

/* The registers of a source, written at device IRQL, so guarded by the interrupt lock. */
struct softgpu_source {
	uint64_t address, next_address;
	struct softgpu_picture picture, next_picture;
	int visible, pending;
	uint32_t frame; /* pictures read so far */
};

struct softgpu_adapter;

struct softgpu_display {
	struct softgpu_adapter *adapter;
	uint32_t source_count;
	struct softgpu_source source[SOFTGPU_SOURCES_MAX];
	/* BAR 1, if there is one: struct softgpu_monitor for each source, in parts of equal size. */
	char *monitor;
	uint64_t monitor_bytes;
	PVOID thread;
	KEVENT kick;
	KSPIN_LOCK lock; /* guards the next two */
	int is_stopping, is_dirty;
	volatile uint64_t is_flipped; /* set at device IRQL */
	uint64_t began_ns;
};

NTSTATUS softgpu_display_start(struct softgpu_adapter *adapter, PHYSICAL_ADDRESS monitor,
			       uint64_t monitor_bytes);
void softgpu_display_stop(struct softgpu_display *display);
/* From DISPATCH_LEVEL down: there may be something new to be seen. */
void softgpu_display_kick(struct softgpu_display *display);
/* In the DPC: a flip that came at device IRQL wakes the thread. */
void softgpu_display_dpc(struct softgpu_display *display);
/* On an engine: a flip that came in a DMA buffer. */
void softgpu_display_flip(struct softgpu_display *display, uint32_t source, uint64_t address,
			  const struct softgpu_picture *picture);

#endif
