/* SPDX-License-Identifier: MIT */
/*
 * Functions of a client that are to be called: here a function of ours is registered in their place, which sends a notice. Between
 * host and client the addresses of function and context are numbers.
 */
#include "serve/serve_private.h"

enum { REGISTRATIONS_MAX = 4096 };

struct vmm_registration {
	struct vmm_list link; /* in session->registrations */
	struct vmm_session *session;
	uint64_t function, context; /* the client's */
	void *handle;
};

static void send_notice(const struct vmm_registration *r, uint32_t what, uint32_t flags,
			uint64_t bytes)
{
	const struct vmm_message_notice notice = {.what = what,
						  .flags = flags,
						  .function = r->function,
						  .context = r->context,
						  .bytes = bytes};

	const struct vmm_server_hooks *hooks = &r->session->server->hooks;

	vmm_views_notice(&r->session->views, &notice);
	if (hooks->noticed)
		hooks->noticed(hooks->context, &r->session->views.viewer);
}

static void APIENTRY trim_process(D3DKMT_TRIMNOTIFICATION *args)
{
	send_notice(args->Context, VMM_NOTICE_TRIM, args->Flags.Value, args->NumBytesToTrim);
}

/* Never registered: what is compared with it is not what was registered. */
static void APIENTRY trim_nobody(D3DKMT_TRIMNOTIFICATION *args)
{
	(void)args;
}

static int32_t trim_device(void *context, const D3DDDIARG_TRIMRESIDENCYSET *args)
{
	send_notice(context, VMM_NOTICE_TRIM_DEVICE, args->TrimFlags.Value, args->NumBytesToTrim);
	return 0;
}

static struct vmm_registration *create(struct vmm_session *session, uint64_t function,
				       uint64_t context)
{
	struct vmm_registration *r = vmm_calloc(1, sizeof(*r));

	if (r)
		*r = (struct vmm_registration){
			.session = session, .function = function, .context = context};
	return r;
}

static void forget(struct vmm_session *session, struct vmm_registration *r)
{
	if (!r)
		return;
	vmm_list_remove(&r->link);
	session->registration_count--;
	vmm_free(r);
}

static void keep(struct vmm_session *session, struct vmm_registration *r)
{
	vmm_list_push_back(&session->registrations, &r->link);
	session->registration_count++;
}

/* The handle of one whose device has ended may be given again: the newest is meant. */
static struct vmm_registration *find(struct vmm_session *session, const void *handle)
{
	for (struct vmm_list *pos = session->registrations.prev; pos != &session->registrations;
	     pos = pos->prev) {
		struct vmm_registration *r = vmm_container_of(pos, struct vmm_registration, link);

		if (r->handle == handle)
			return r;
	}
	return NULL;
}

int32_t vmm_serve_register_trim(struct vmm_session *session, D3DKMT_REGISTERTRIMNOTIFICATION *args)
{
	const D3DKMT_REGISTERTRIMNOTIFICATION given = *args;
	struct vmm_registration *r = NULL;
	int32_t status = VMM_INSUFFICIENT_RESOURCES;

	vmm_os_mutex_lock(&session->registration_lock);
	if (session->registration_count < REGISTRATIONS_MAX)
		r = create(session, (uint64_t)(uintptr_t)given.Callback,
			   (uint64_t)(uintptr_t)given.Context);
	if (!r)
		goto out_lock;
	args->Callback = given.Callback ? trim_process : NULL;
	args->Context = r;
	status = D3DKMTRegisterTrimNotification(args);
	args->Callback = given.Callback;
	args->Context = given.Context;
	if (status < 0) {
		vmm_free(r);
		goto out_lock;
	}
	forget(session, find(session, args->Handle));
	r->handle = args->Handle;
	keep(session, r);
out_lock:
	vmm_os_mutex_unlock(&session->registration_lock);
	return status;
}

int32_t vmm_serve_unregister_trim(struct vmm_session *session,
				  D3DKMT_UNREGISTERTRIMNOTIFICATION *args)
{
	PFND3DKMT_TRIMNOTIFICATIONCALLBACK given = args->Callback;

	vmm_os_mutex_lock(&session->registration_lock);
	struct vmm_registration *r = find(session, args->Handle);
	if (given)
		args->Callback =
			r && r->function == (uint64_t)(uintptr_t)given ? trim_process : trim_nobody;
	int32_t status = D3DKMTUnregisterTrimNotification(args);
	args->Callback = given;
	/* No call is under way any more. */
	if (status >= 0)
		forget(session, r);
	vmm_os_mutex_unlock(&session->registration_lock);
	return status;
}

int32_t vmm_serve_set_trim(struct vmm_session *session, void *device, uint64_t function,
			   uint64_t context)
{
	struct vmm_registration *r = NULL;
	int32_t status = VMM_NO_MEMORY;

	vmm_os_mutex_lock(&session->registration_lock);
	if (function)
		r = create(session, function, context);
	if (r || !function)
		status = vidmm_device_set_trim(device, r, function ? trim_device : NULL);
	if (status < 0) {
		vmm_free(r);
		goto out_lock;
	}
	forget(session, find(session, device));
	if (r) {
		r->handle = device;
		keep(session, r);
	}
out_lock:
	vmm_os_mutex_unlock(&session->registration_lock);
	return status;
}

void vmm_serve_forget_registrations(struct vmm_session *session)
{
	while (!vmm_list_empty(&session->registrations))
		forget(session, vmm_container_of(session->registrations.next,
						 struct vmm_registration, link));
}
