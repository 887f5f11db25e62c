/* SPDX-License-Identifier: MIT */
/*
 * Functions of a client that the host calls. In place of each, the host registers a host function,
 * which sends the client a callback notification (VMM_MESSAGE_NOTIFICATION). The client's addresses
 * of function and context are only numbers here.
 */
#include "serve/serve_private.h"

enum { REGISTRATIONS_MAX = 4096 };

struct vmm_registration {
	struct vmm_list link; /* in session->registrations */
	struct vmm_session *session;
	uint64_t function, context; /* addresses in the client */
	void *handle;
};

static void send_notification(const struct vmm_registration *r, uint32_t what, uint32_t flags,
			      uint64_t bytes)
{
	const struct vmm_message_notification notification = {.what = what,
							      .flags = flags,
							      .function = r->function,
							      .context = r->context,
							      .bytes = bytes};

	const struct vmm_server_hooks *hooks = &r->session->server->hooks;

	vmm_views_notification(&r->session->views, &notification);
	if (hooks->notification_sent)
		hooks->notification_sent(hooks->context, &r->session->views.viewer);
}

static void APIENTRY trim_process(D3DKMT_TRIMNOTIFICATION *args)
{
	send_notification(args->Context, VMM_NOTIFICATION_TRIM, args->Flags.Value,
			  args->NumBytesToTrim);
}

/*
 * Passed to the core when the client's function is not the registered one, so that the comparison
 * there fails.
 */
static void APIENTRY trim_unregistered(D3DKMT_TRIMNOTIFICATION *args)
{
	(void)args;
}

static int32_t trim_device(void *context, const D3DDDIARG_TRIMRESIDENCYSET *args)
{
	send_notification(context, VMM_NOTIFICATION_TRIM_DEVICE, args->TrimFlags.Value,
			  args->NumBytesToTrim);
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

static void remove_registration(struct vmm_session *session, struct vmm_registration *r)
{
	if (!r)
		return;
	vmm_list_remove(&r->link);
	session->registration_count--;
	vmm_free(r);
}

static void add_locked(struct vmm_session *session, struct vmm_registration *r)
	VMM_REQUIRES(vmm_registration_lock_class)
{
	vmm_assert_held(&session->registration_lock);
	vmm_list_push_back(&session->registrations, &r->link);
	session->registration_count++;
}

/* Searches from the newest: the handle of a registration whose device has ended may be reused. */
static struct vmm_registration *find_locked(struct vmm_session *session, const void *handle)
	VMM_REQUIRES(vmm_registration_lock_class)
{
	vmm_assert_held(&session->registration_lock);
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

	vmm_registration_lock(session);
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
	remove_registration(session, find_locked(session, args->Handle));
	r->handle = args->Handle;
	add_locked(session, r);
out_lock:
	vmm_registration_unlock(session);
	return status;
}

int32_t vmm_serve_unregister_trim(struct vmm_session *session,
				  D3DKMT_UNREGISTERTRIMNOTIFICATION *args)
{
	PFND3DKMT_TRIMNOTIFICATIONCALLBACK given = args->Callback;

	vmm_registration_lock(session);
	struct vmm_registration *r = find_locked(session, args->Handle);
	if (given)
		args->Callback = r && r->function == (uint64_t)(uintptr_t)given ? trim_process
										: trim_unregistered;
	int32_t status = D3DKMTUnregisterTrimNotification(args);
	args->Callback = given;
	/* no call of the function is under way any more */
	if (status >= 0)
		remove_registration(session, r);
	vmm_registration_unlock(session);
	return status;
}

int32_t vmm_serve_set_trim(struct vmm_session *session, void *device, uint64_t function,
			   uint64_t context)
{
	struct vmm_registration *r = NULL;
	int32_t status = VMM_NO_MEMORY;

	vmm_registration_lock(session);
	if (function)
		r = create(session, function, context);
	if (r || !function)
		status = vidmm_device_set_trim(device, r, function ? trim_device : NULL);
	if (status < 0) {
		vmm_free(r);
		goto out_lock;
	}
	remove_registration(session, find_locked(session, device));
	if (r) {
		r->handle = device;
		add_locked(session, r);
	}
out_lock:
	vmm_registration_unlock(session);
	return status;
}

void vmm_serve_forget_registrations(struct vmm_session *session)
{
	while (!vmm_list_empty(&session->registrations))
		remove_registration(session, vmm_container_of(session->registrations.next,
							      struct vmm_registration, link));
}
