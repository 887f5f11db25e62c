/* SPDX-License-Identifier: MIT */
/*
 * The displays: what each source shows, from which address, and the monitor connected to it. A
 * thread simulates the hardware. At the beginning of a frame it applies what was set, reads the
 * picture and raises CRTC_VSYNC. It sleeps while nothing changes.
 */
#ifndef SOFTGPU_DISPLAY_H
#define SOFTGPU_DISPLAY_H

#include <ntddk.h>

#include <stdint.h>

#define SOFTGPU_SOURCES_MAX 4u

/* The layout of an allocation that holds a picture. */
struct softgpu_picture {
	uint32_t width, height, pitch_bytes; /* width 0: no picture */
};

/* The registers of a source. Written at device IRQL, so the interrupt lock guards them. */
struct softgpu_source {
	uint64_t address, next_address;
	struct softgpu_picture picture, next_picture;
	int visible, pending;
	uint32_t frame; /* number of pictures read so far */
};

struct softgpu_adapter;

struct softgpu_display {
	struct softgpu_adapter *adapter;
	uint32_t source_count;
	struct softgpu_source source[SOFTGPU_SOURCES_MAX];
	/*
	 * BAR 1, if there is one: a struct softgpu_monitor for each source, in parts of equal size.
	 */
	char *monitor;
	uint64_t monitor_bytes;
	PVOID thread;
	KEVENT kick;
	KSPIN_LOCK lock; /* guards the next two members */
	int is_stopping, is_dirty;
	volatile uint64_t is_flipped; /* set at device IRQL */
	uint64_t began_ns;
};

NTSTATUS softgpu_display_start(struct softgpu_adapter *adapter, PHYSICAL_ADDRESS monitor,
			       uint64_t monitor_bytes);
void softgpu_display_stop(struct softgpu_display *display);
/* At DISPATCH_LEVEL or below: the picture may have changed. */
void softgpu_display_kick(struct softgpu_display *display);
/* Called by the DPC: wakes the thread for a flip that came at device IRQL. */
void softgpu_display_dpc(struct softgpu_display *display);
/* Called by an engine: a flip in a DMA buffer. */
void softgpu_display_flip(struct softgpu_display *display, uint32_t source, uint64_t address,
			  const struct softgpu_picture *picture);

#endif
