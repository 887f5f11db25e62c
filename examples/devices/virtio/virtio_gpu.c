/* SPDX-License-Identifier: MIT */
/* The device model: requests of both queues, and the functions that vidmm calls. */
#include "virtio_gpu_private.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_READ = 0, EVENTS_CLEAR = 4, NUM_SCANOUTS = 8, NUM_CAPSETS = 12, CONFIG_BYTES = 16 };
enum { D0 = 1 };

__attribute__((visibility("default"))) const struct vidmm_device_model *vidmm_device_model(void);

/* ---- requests ---- */

static uint32_t bytes_of(uint32_t type)
{
	switch (type) {
	case VIRTIO_GPU_RESOURCE_CREATE_2D:
		return sizeof(struct virtio_gpu_create);
	case VIRTIO_GPU_RESOURCE_UNREF:
	case VIRTIO_GPU_RESOURCE_DETACH_BACKING:
	case VIRTIO_GPU_GET_CAPSET_INFO:
		return sizeof(struct virtio_gpu_resource_id);
	case VIRTIO_GPU_SET_SCANOUT:
		return sizeof(struct virtio_gpu_scanout);
	case VIRTIO_GPU_RESOURCE_FLUSH:
		return sizeof(struct virtio_gpu_flush);
	case VIRTIO_GPU_TRANSFER_TO_HOST_2D:
		return sizeof(struct virtio_gpu_transfer);
	case VIRTIO_GPU_RESOURCE_ATTACH_BACKING:
		return sizeof(struct virtio_gpu_backing);
	case VIRTIO_GPU_UPDATE_CURSOR:
	case VIRTIO_GPU_MOVE_CURSOR:
		return sizeof(struct virtio_gpu_cursor);
	default:
		return sizeof(struct virtio_gpu_header);
	}
}

static uint32_t control(struct gpu *gpu, uint32_t type, const void *c, uint32_t bytes)
{
	switch (type) {
	case VIRTIO_GPU_GET_DISPLAY_INFO:
		return VIRTIO_GPU_OK_DISPLAY_INFO;
	case VIRTIO_GPU_RESOURCE_CREATE_2D:
		return gpu_create(gpu, c);
	case VIRTIO_GPU_RESOURCE_UNREF:
		return gpu_unref(gpu, ((const struct virtio_gpu_resource_id *)c)->resource);
	case VIRTIO_GPU_SET_SCANOUT:
		return gpu_set_scanout(gpu, c);
	case VIRTIO_GPU_RESOURCE_FLUSH:
		return gpu_flush(gpu, c);
	case VIRTIO_GPU_TRANSFER_TO_HOST_2D:
		return gpu_transfer(gpu, c);
	case VIRTIO_GPU_RESOURCE_ATTACH_BACKING:
		return gpu_attach(gpu, c, bytes);
	case VIRTIO_GPU_RESOURCE_DETACH_BACKING:
		return gpu_detach(gpu, ((const struct virtio_gpu_resource_id *)c)->resource);
	case VIRTIO_GPU_GET_CAPSET_INFO:
		return VIRTIO_GPU_ERR_INVALID_PARAMETER; /* num_capsets is 0 */
	default:
		return VIRTIO_GPU_ERR_UNSPEC;
	}
}

static uint32_t execute(struct gpu *gpu, uint32_t queue, const struct virtio_gpu_header *header,
			const void *data, uint32_t bytes)
{
	bool of_cursor =
		header->type == VIRTIO_GPU_UPDATE_CURSOR || header->type == VIRTIO_GPU_MOVE_CURSOR;

	if (bytes < sizeof(*header) || bytes < bytes_of(header->type))
		return VIRTIO_GPU_ERR_INVALID_PARAMETER;
	if (of_cursor != (queue == VIRTIO_GPU_CURSOR_QUEUE))
		return VIRTIO_GPU_ERR_UNSPEC;
	return of_cursor ? gpu_cursor(gpu, data) : control(gpu, header->type, data, bytes);
}

static uint32_t handle(void *kind, uint32_t queue, const struct virtio_request *request,
		       const uint8_t *data)
{
	struct gpu *gpu = kind;
	struct virtio_gpu_display_info answer = {0};
	struct virtio_gpu_header header = {0};
	uint32_t bytes = sizeof(answer.header);

	memcpy(&header, data,
	       request->readable < sizeof(header) ? request->readable : sizeof(header));
	answer.header.type = execute(gpu, queue, &header, data, request->readable);
	if (header.flags & VIRTIO_GPU_FLAG_FENCE) {
		answer.header.flags = VIRTIO_GPU_FLAG_FENCE;
		answer.header.fence = header.fence;
		answer.header.context = header.context;
	}
	if (answer.header.type == VIRTIO_GPU_OK_DISPLAY_INFO) {
		answer.mode[0].rect.width = DISPLAY_WIDTH;
		answer.mode[0].rect.height = DISPLAY_HEIGHT;
		answer.mode[0].enabled = 1;
		bytes = sizeof(answer);
	}
	/* Requests of the cursor queue need no answer. */
	if (request->writable < bytes && (request->writable || queue == VIRTIO_GPU_CONTROL_QUEUE))
		gpu->virtio.services->driver_error(gpu->virtio.services->handle,
						   "a request has no room for its response");
	return virtio_answer(&gpu->virtio, request, &answer, bytes);
}

/* ---- the device's configuration ---- */

static uint32_t read_device_config(void *kind, uint32_t offset)
{
	(void)kind; /* no event ever is pending: the display never changes by itself */
	return offset == NUM_SCANOUTS ? 1 : 0;
}

static void write_device_config(void *kind, uint32_t offset, uint32_t value)
{
	(void)kind, (void)offset, (void)value; /* events_clear: there is no event */
}

static void reset_kind(void *kind)
{
	gpu_forget(kind);
}

/* ---- what vidmm calls ---- */

static int32_t create(void *context, const struct vidmm_device_services *services, void **device)
{
	const struct virtio_gpu_settings *settings = context;
	struct gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return (int32_t)0xC0000017; /* STATUS_NO_MEMORY */
	gpu->display = settings && settings->display ? settings->display : &gpu->unseen;
	gpu->virtio.services = services;
	gpu->virtio.features = VIRTIO_F_VERSION_1;
	gpu->virtio.messages = settings ? settings->messages : 0;
	gpu->virtio.config_read = read_device_config;
	gpu->virtio.config_write = write_device_config;
	gpu->virtio.handle = handle;
	gpu->virtio.reset = reset_kind;
	gpu->virtio.kind = gpu;
	virtio_image(gpu->image, CONFIG_BYTES, gpu->virtio.messages);
	virtio_reset(&gpu->virtio);
	*device = gpu;
	return 0;
}

static void destroy(void *device)
{
	gpu_forget(device);
	free(device);
}

static void reset(void *device)
{
	struct gpu *gpu = device;

	virtio_reset(&gpu->virtio);
	gpu_forget(gpu);
}

static void set_power(void *device, uint32_t state)
{
	if (state != D0)
		reset(device);
}

static uint32_t config_read(void *device, uint32_t offset, uint32_t width)
{
	struct gpu *gpu = device;

	return virtio_config_read(&gpu->virtio, gpu->image, offset, width);
}

static void config_write(void *device, uint32_t offset, uint32_t width, uint32_t value)
{
	virtio_config_write(&((struct gpu *)device)->virtio, offset, width, value);
}

static uint64_t bar_read(void *device, uint32_t bar, uint64_t offset, uint32_t width)
{
	(void)bar;
	return virtio_bar_read(&((struct gpu *)device)->virtio, offset, width);
}

static void bar_write(void *device, uint32_t bar, uint64_t offset, uint32_t width, uint64_t value)
{
	(void)bar;
	virtio_bar_write(&((struct gpu *)device)->virtio, offset, width, value);
}

static void timer(void *device, uint32_t queue)
{
	virtio_run_queue(&((struct gpu *)device)->virtio, queue);
}

void virtio_gpu_describe(struct virtio_gpu_settings *settings, uint8_t *image,
			 struct vidmm_device_model *model)
{
	memset(image, 0, 256);
	virtio_image(image, CONFIG_BYTES, settings ? settings->messages : 0);
	*model = (struct vidmm_device_model){
		.struct_size = sizeof(*model),
		.version = VIDMM_DEVICE_VERSION,
		.name = "virtio-gpu",
		.vendor_id = 0x1AF4,
		.device_id = 0x1040 + 16, /* 16 is a GPU */
		.subsystem_vendor_id = 0x1AF4,
		.subsystem_id = 0x1100,
		.class_code = 0x038000,
		.revision_id = 1,
		.config_bytes = 256,
		.config_image = image,
		.bar = {[VIRTIO_BAR] = {VIDMM_BAR_REGISTERS, VIDMM_BAR_64BIT, VIRTIO_BAR_BYTES}},
		.interrupt_messages = settings ? settings->messages : 0,
		.create = create,
		.context = settings,
		.destroy = destroy,
		.reset = reset,
		.set_power = set_power,
		.config_read = config_read,
		.config_write = config_write,
		.bar_read = bar_read,
		.bar_write = bar_write,
		.timer = timer,
	};
}

const struct vidmm_device_model *vidmm_device_model(void)
{
	static struct vidmm_device_model model;
	static uint8_t image[256];

	virtio_gpu_describe(NULL, image, &model);
	return &model;
}
