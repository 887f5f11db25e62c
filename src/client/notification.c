/* SPDX-License-Identifier: MIT */
/*
 * Callback notifications: the host has a function of the program called. Each registered function
 * has a number, which is all that the host knows of it. A notification carries that number.
 *
 * One thread calls the functions, one at a time and with no lock held. It does nothing else,
 * because a function may wait for anything: for a fence, or for a thread whose store sleeps on a
 * write-protected page. The thread of views.c ends such waits. A thread that ends a registration
 * drops its pending notifications. It then waits for a call under way, unless it is itself inside
 * that call.
 */
#include "client/client_private.h"

#include <d3dkmthk.h>
#include <d3dumddi.h>

static struct vmm_registration *find_locked(struct vidmm_connection *connection, uint64_t number)
	VMM_REQUIRES(vmm_client_notification_class)
{
	struct vmm_list *pos;

	vmm_assert_owned(&connection->notification_lock.owner);
	vmm_list_for_each (pos, &connection->registrations) {
		struct vmm_registration *registration =
			vmm_container_of(pos, struct vmm_registration, link);

		if (registration->number == number)
			return registration;
	}
	return NULL;
}

static void *notification_thread(void *argument)
{
	struct vidmm_connection *connection = argument;

	while (!vmm_client_lost(connection)) {
		vmm_client_call_notifications(connection);
		vmm_client_notification_lock(connection);
		while (vmm_list_empty(&connection->notifications) && !vmm_client_lost(connection))
			vmm_client_mutex_wait(&connection->notification_lock,
					      &connection->notification_arrived);
		vmm_client_notification_unlock(connection);
	}
	return NULL;
}

/*
 * Starts the notification thread once. A connection without threads needs none: its caller calls
 * vmm_client_poll.
 */
static bool start_thread_locked(struct vidmm_connection *connection)
	VMM_REQUIRES(vmm_client_notification_class)
{
	vmm_assert_owned(&connection->notification_lock.owner);
	if (connection->threaded && !connection->notification_threaded)
		connection->notification_threaded =
			vmm_client_start_thread(&connection->notification_thread,
						notification_thread, connection, "vidmm-callbacks");
	return connection->notification_threaded || !connection->threaded;
}

void vmm_client_stop_notifications(struct vidmm_connection *connection)
{
	vmm_client_notification_lock(connection);
	pthread_cond_broadcast(&connection->notification_arrived);
	vmm_client_notification_unlock(connection);
}

bool vmm_client_notifications_idle(struct vidmm_connection *connection)
{
	vmm_assert_owned(&connection->view_lock.owner);
	vmm_client_notification_lock(connection);
	bool idle = connection->notification_threaded && !connection->calling &&
		    vmm_list_empty(&connection->notifications);
	vmm_client_notification_unlock(connection);
	return idle;
}

uint64_t vmm_client_register(struct vidmm_connection *connection, uint32_t what, uint32_t device,
			     void *function, void *context)
{
	struct vmm_registration *registration = vmm_calloc(1, sizeof(*registration));

	if (!registration)
		return 0;
	*registration = (struct vmm_registration){
		.what = what, .device = device, .function = function, .context = context};
	vmm_client_notification_lock(connection);
	if (!start_thread_locked(connection)) {
		vmm_client_notification_unlock(connection);
		vmm_free(registration);
		return 0;
	}
	registration->number = ++connection->last_registration;
	uint64_t number = registration->number;
	vmm_list_push_back(&connection->registrations, &registration->link);
	vmm_client_notification_unlock(connection);
	return number;
}

void vmm_client_registered(struct vidmm_connection *connection, uint64_t number, void *handle)
{
	vmm_client_notification_lock(connection);
	struct vmm_registration *registration = find_locked(connection, number);
	if (registration)
		registration->handle = handle;
	vmm_client_notification_unlock(connection);
}

uint64_t vmm_client_find(struct vidmm_connection *connection, uint32_t what, uint32_t device,
			 const void *handle)
{
	struct vmm_list *pos;
	uint64_t number = 0;

	vmm_client_notification_lock(connection);
	vmm_list_for_each (pos, &connection->registrations) {
		const struct vmm_registration *registration =
			vmm_container_of(pos, struct vmm_registration, link);

		if (registration->what == what &&
		    (handle ? registration->handle == handle : registration->device == device))
			number = registration->number;
	}
	vmm_client_notification_unlock(connection);
	return number;
}

void vmm_client_unregister(struct vidmm_connection *connection, uint64_t number)
{
	struct vmm_list *pos, *next;

	vmm_client_notification_lock(connection);
	struct vmm_registration *registration = find_locked(connection, number);
	if (registration) {
		vmm_list_remove(&registration->link);
		vmm_free(registration);
	}
	for (pos = connection->notifications.next; pos != &connection->notifications; pos = next) {
		struct vmm_notification *notification =
			vmm_container_of(pos, struct vmm_notification, link);

		next = pos->next;
		if (notification->message.context != number)
			continue;
		vmm_list_remove(pos);
		vmm_free(notification);
	}
	while (connection->calling == number && number &&
	       !pthread_equal(connection->caller, pthread_self()))
		vmm_client_mutex_wait(&connection->notification_lock,
				      &connection->notification_done);
	vmm_client_notification_unlock(connection);
}

void vmm_client_take_notification(struct vidmm_connection *connection,
				  const struct vmm_message_notification *message)
{
	struct vmm_notification *notification;

	vmm_assert_owned(&connection->view_lock.owner);
	notification = vmm_calloc(1, sizeof(*notification));
	if (!notification)
		return; /* lost; the host asks for a trim again while it is needed */
	notification->message = *message;
	vmm_client_notification_lock(connection);
	vmm_list_push_back(&connection->notifications, &notification->link);
	pthread_cond_broadcast(&connection->notification_arrived);
	vmm_client_notification_unlock(connection);
}

static void call(const struct vmm_registration *registration,
		 const struct vmm_message_notification *message)
{
	if (registration->what == VMM_NOTIFICATION_TRIM_DEVICE) {
		const D3DDDIARG_TRIMRESIDENCYSET args = {.TrimFlags.Value = message->flags,
							 .NumBytesToTrim = message->bytes};

		/* a driver's failure to trim has no consequence */
		(void)((PFND3DDDI_TRIMRESIDENCYSET)(uintptr_t)registration->function)(
			registration->context, &args);
	} else {
		D3DKMT_TRIMNOTIFICATION args = {.Flags.Value = message->flags,
						.NumBytesToTrim = message->bytes};

		args.Context = registration->context;
		((PFND3DKMT_TRIMNOTIFICATIONCALLBACK)(uintptr_t)registration->function)(&args);
	}
}

void vmm_client_call_notifications(struct vidmm_connection *connection)
{
	vmm_client_notification_lock(connection);
	/* One at a time: in a world with one thread, a function may call this again. */
	while (!connection->calling && !vmm_list_empty(&connection->notifications)) {
		struct vmm_notification *notification = vmm_container_of(
			connection->notifications.next, struct vmm_notification, link);
		const struct vmm_registration *known =
			find_locked(connection, notification->message.context);

		vmm_list_remove(&notification->link);
		if (known) {
			const struct vmm_registration registration = *known;

			connection->calling = registration.number;
			connection->caller = pthread_self();
			vmm_client_notification_unlock(connection);
			call(&registration, &notification->message);
			vmm_client_notification_lock(connection);
			connection->calling = 0;
			pthread_cond_broadcast(&connection->notification_done);
		}
		vmm_free(notification);
	}
	vmm_client_notification_unlock(connection);
}

void vmm_client_forget_notifications(struct vidmm_connection *connection)
{
	while (!vmm_list_empty(&connection->notifications)) {
		struct vmm_list *link = connection->notifications.next;

		vmm_list_remove(link);
		vmm_free(vmm_container_of(link, struct vmm_notification, link));
	}
	while (!vmm_list_empty(&connection->registrations)) {
		struct vmm_list *link = connection->registrations.next;

		vmm_list_remove(link);
		vmm_free(vmm_container_of(link, struct vmm_registration, link));
	}
}
