/* SPDX-License-Identifier: MIT */
/*
 * os: threads, time, waiting and memory. Everything above reaches the operating system through this
 * file.
 *
 * Two back ends behind one interface, chosen when a world is created:
 *   linux  real threads, futexes, CLOCK_MONOTONIC.
 *   sim    every thread is a coroutine of the one calling thread, time is virtual, and which
 *          runnable coroutine goes next is drawn from a seed: same seed, same interleaving, same
 *          event stream. When nothing can run and no timer is pending, the world is deadlocked:
 *          the report says who waits for what.
 *
 * The thread that calls vmm_os_create becomes the world's first thread ("main"). On sim all calls
 * must come from that one system thread; on linux any thread may call (foreign threads are adopted
 * on first use). Lock ranks are checked per thread: taking a lock of a rank not greater than one
 * already held asserts.
 */
#ifndef VMM_OS_OS_H
#define VMM_OS_OS_H

#include <stdatomic.h>
#include "base/base.h"

struct vmm_os;
struct vmm_os_thread;

enum vmm_os_kind { VMM_OS_LINUX, VMM_OS_SIM };

struct vmm_os_config {
	enum vmm_os_kind kind;
	uint64_t seed; /* sim: interleaving; 0 is a valid seed */
	/*
	 * sim: chance in 1/1024 that vmm_os_yield_point, a mutex release or a wake switches to
	 * another runnable coroutine. 0: switch only when the running one blocks (fastest, one
	 * fixed order).
	 */
	uint32_t switch_per_1024;
	/*
	 * sim: called once when the world is deadlocked, on the main thread, with a text that names
	 * each blocked thread, what it waits for and since when. When it returns, the world is
	 * dead: only main runs on, so that a test can report and end. Its waits that would block
	 * fail with VMM_UNSUCCESSFUL, its sleeps only move the clock, a mutex it asks for is taken
	 * from the thread that will never release it, joins return, and vmm_os_destroy drops the
	 * other threads without its leak checks. NULL: the text goes to stderr and the process
	 * aborts.
	 */
	void (*deadlock)(void *context, const char *report);
	void *deadlock_context;
};

vmm_status vmm_os_create(const struct vmm_os_config *config, struct vmm_os **os) VMM_MUST_CHECK;
/*
 * All threads must have ended and been joined; all memory objects and views released (asserted,
 * with names).
 */
void vmm_os_destroy(struct vmm_os *os);
enum vmm_os_kind vmm_os_kind(const struct vmm_os *os);
/* Sim: a deadlock was reported; nothing but main runs any more (see vmm_os_config.deadlock). */
bool vmm_os_dead(const struct vmm_os *os);

/*
 * The world that the calling thread works for: its own in a thread of a world, the one created last
 * in a thread that created one, otherwise NULL until set. This is how code that gets no `os`
 * argument (the kernel services of `nt`) finds its world; whoever enters a world from a foreign
 * thread sets it and puts the returned one back.
 */
struct vmm_os *vmm_os_current(void);
struct vmm_os *vmm_os_set_current(struct vmm_os *os); /* returns the one before */
/* One pointer for the module that builds on this world (`nt`); NULL at first. */
void vmm_os_attach(struct vmm_os *os, void *object);
void *vmm_os_attached(const struct vmm_os *os);
void *vmm_os_current_attached(void); /* of the current world; NULL without one */

/* ---- time: ns since the world began; sim: virtual, moves only when everybody waits ---- */
uint64_t vmm_os_now_ns(struct vmm_os *os);
#define VMM_OS_FOREVER UINT64_MAX
/* The time of day in 100 ns since 1601, which somebody may set; sim: that world begins in 1601. */
uint64_t vmm_os_system_time(struct vmm_os *os);
/*
 * Blocks until the given time. On sim, other threads run meanwhile in the order of their timers;
 * when no other thread is runnable and no earlier timer exists this only moves the clock (no
 * switch, a few ns).
 */
void vmm_os_sleep_until(struct vmm_os *os, uint64_t when_ns);
/*
 * A place where sim may interleave (see switch_per_1024); nothing on linux. Holding no
 * vmm_os_mutex.
 */
void vmm_os_yield_point(struct vmm_os *os);
/*
 * Lets all other threads of the world run until each waits, sleeps or has ended. Linux: adopted ones
 * are not counted, and it waits for threads that run on until they took a second of processor time.
 */
void vmm_os_settle(struct vmm_os *os);
/* For who polls: another thread gets the processor once. Sim: settles, or the others would never run. */
void vmm_os_yield(struct vmm_os *os);
/*
 * For who looks for a moment before it waits: may threads of this world run at the same time, and what to do between two
 * looks.
 */
bool vmm_os_is_parallel(const struct vmm_os *os);
static inline void vmm_os_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}
/* Deterministic per world on sim (from the seed), random on linux. */
uint64_t vmm_os_random(struct vmm_os *os);

/* ---- threads ---- */
typedef void vmm_os_thread_fn(void *arg);
vmm_status vmm_os_thread_create(struct vmm_os *os, const char *name, vmm_os_thread_fn *fn,
				void *arg, struct vmm_os_thread **thread) VMM_MUST_CHECK;
void vmm_os_thread_join(struct vmm_os_thread *thread); /* waits for its end, frees it */
struct vmm_os_thread *vmm_os_thread_self(struct vmm_os *os);
const char *vmm_os_thread_name(const struct vmm_os_thread *thread);
/*
 * Linux: the word is not 0, and has VMM_OS_KEEPER_GONE set as soon as this process is no more, however it ended, or the keeper was stopped. It
 * may lie in memory that other processes see: nobody hears of the end before. A thread that waits is all it takes; on the side it
 * calls `told`, with no lock held, at least once after each vmm_os_keeper_tell, which waits for nothing.
 */
#define VMM_OS_KEEPER_GONE 0x40000000u
struct vmm_os_keeper;
vmm_status vmm_os_keeper_start(struct vmm_os *os, _Atomic uint32_t *word,
			       void (*told)(void *context), void *context,
			       struct vmm_os_keeper **keeper) VMM_MUST_CHECK;
void vmm_os_keeper_tell(struct vmm_os_keeper *keeper);
void vmm_os_keeper_stop(struct vmm_os_keeper *keeper);
/* Linux: who sleeps on the word by a futex, in whatever process maps its memory. */
void vmm_os_wake_elsewhere(_Atomic uint32_t *word);
/*
 * Per-thread words, 0 in a new thread: 0 to 2 are of `nt` (IRQL and bookkeeping), 3 of `port`, 4 of
 * `object`, 5 of `kmt`, 6 of `sync`.
 */
#define VMM_OS_SLOTS 7u
uint64_t *vmm_os_thread_slot(struct vmm_os_thread *thread, unsigned index);
uint64_t *vmm_os_own_slots(struct vmm_os *os); /* all of them, of the calling thread */
/*
 * One more word per thread, which others may read: what the thread is using just now, for whoever
 * wants to end that. 0: nothing. The calling thread's own; and whether any thread's has the value.
 *
 * A thread announces a value (returned: the one before) and then looks whether what it names may be
 * used; who ends that changes what is looked at and then asks for the value: one of the two sees
 * the other. Ends are rare, so it is the one who asks that pays for both, with a system call that
 * puts a fence into every running thread; where the system has none, an announcement is a locked
 * instruction.
 */
_Atomic uint64_t *vmm_os_thread_using(struct vmm_os *os);
bool vmm_os_any_thread_using(struct vmm_os *os, uint64_t value);
extern _Atomic bool vmm_os_fences_others; /* constant once there is a world */
static inline uint64_t vmm_os_announce(_Atomic uint64_t *using, uint64_t value)
{
	if (vmm_unlikely(!atomic_load_explicit(&vmm_os_fences_others, memory_order_relaxed)))
		return atomic_exchange(using, value);
	uint64_t before = atomic_load_explicit(using, memory_order_relaxed);
	atomic_store_explicit(using, value, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return before;
}

/* ---- waiting: the one primitive, a futex ----
 * Sleeps while *word == expected, until woken or deadline_ns (absolute, VMM_OS_FOREVER = none).
 * Returns VMM_OK when woken or the word differed (spurious wakes possible: always re-check),
 * VMM_TIMEOUT, or VMM_UNSUCCESSFUL after a reported deadlock on sim. `why` (static string) and
 * `detail` appear in deadlock reports: "fence of node", 17. NULL: an idle service thread, which
 * deadlock reports leave out.
 */
vmm_status vmm_os_wait(struct vmm_os *os, _Atomic uint32_t *word, uint32_t expected,
		       uint64_t deadline_ns, const char *why, uint64_t detail);
void vmm_os_wake(struct vmm_os *os, _Atomic uint32_t *word, uint32_t count); /* UINT32_MAX: all */

/* ---- mutex with rank; uncontended: one locked instruction each way, no syscall ---- */
struct vmm_os_mutex {
	_Atomic uint32_t state; /* 0 free, 1 held, 2 held with waiters */
	uint32_t rank;
	struct vmm_os *os;
	_Atomic(struct vmm_os_thread *) owner; /* for asserts and deadlock reports */
	const char *name;
};
void vmm_os_mutex_init(struct vmm_os_mutex *mutex, struct vmm_os *os, uint32_t rank,
		       const char *name);
void vmm_os_mutex_finish(struct vmm_os_mutex *mutex); /* asserts that it is free */
void vmm_os_mutex_lock(struct vmm_os_mutex *mutex);
bool vmm_os_mutex_trylock(struct vmm_os_mutex *mutex); /* no rank check: cannot deadlock */
void vmm_os_mutex_unlock(struct vmm_os_mutex *mutex);
/*
 * And one that waits for the word (NULL: nobody) goes on: once the mutex is free, so that it does not run into it. Of the word, which may
 * be gone by then, the address counts. With the simulator both are one moment.
 */
void vmm_os_mutex_unlock_and_wake(struct vmm_os_mutex *mutex, _Atomic uint32_t *word);
/* Could the calling thread take it? Asserts so as if it did; of a mutex that is never taken, but stands for a rank. */
void vmm_os_mutex_pass(const struct vmm_os_mutex *mutex);
bool vmm_os_mutex_held(const struct vmm_os_mutex *mutex); /* by the calling thread */

/* ---- memory objects: memory that can be mapped at several places, permanently at one ----
 * Zero at first. Both back ends use real memory (memfd, huge-page advised at 2 MiB and more).
 */
struct vmm_os_memory_record; /* what the leak report of vmm_os_destroy knows */
struct vmm_os_memory {
	struct vmm_os *os;
	struct vmm_os_memory_record *record;
	char *base; /* permanent read-write mapping of the whole object ("kernel address") */
	uint64_t size_bytes; /* page multiple */
	int fd;
};
vmm_status vmm_os_memory_create(struct vmm_os *os, const char *name, uint64_t size_bytes,
				struct vmm_os_memory *memory) VMM_MUST_CHECK;
/*
 * The memory behind a descriptor of the caller's, which may be closed afterwards; it must not be made smaller. Its content
 * stays. VMM_INVALID_HANDLE: it is no descriptor; VMM_INVALID_PARAMETER: it has no such memory to read and write.
 */
vmm_status vmm_os_memory_open(struct vmm_os *os, int fd, uint64_t size_bytes,
			      struct vmm_os_memory *memory) VMM_MUST_CHECK;
/*
 * The same of somebody who may do us harm: VMM_INVALID_PARAMETER also unless it is a memfd that is sealed against shrinking,
 * so that no access of ours ever faults. It counts as whole.
 */
vmm_status vmm_os_memory_open_sealed(struct vmm_os *os, int fd, uint64_t size_bytes,
				     struct vmm_os_memory *memory) VMM_MUST_CHECK;
/* It holds nothing but what everybody may see who is shown a part of it: views of others may be of it (see private objects). */
void vmm_os_memory_set_whole(const struct vmm_os_memory *memory);
/* It holds nothing but what that owner of private objects may see: his views may be of it, and nobody else's; 0: of nobody. */
void vmm_os_memory_set_owner(const struct vmm_os_memory *memory, uint64_t owner);
void vmm_os_memory_destroy(struct vmm_os_memory *memory);
/*
 * The range is about to be used: where that makes it cheaper, pages come in large steps, before they are touched. A
 * hint, which changes no content. The caller serialises expect and discard of one object.
 */
void vmm_os_memory_expect(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length);
/* Gives pages back to the system; they read as zero afterwards. Page-aligned range. */
void vmm_os_memory_discard(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length);

#define VMM_OS_HUGE_PAGE ((uint64_t)2 << 20)
/* ---- pages of ours, VMM_OS_HUGE_PAGE bytes at once: zero at first ---- */
char *vmm_os_pages_create(void); /* of small pages, which come as they are touched; NULL: none */
void vmm_os_pages_join(char *pages); /* a hint: from here on they are one; content stays */
void vmm_os_pages_destroy(char *pages);

/* ---- who looks from another address space ----
 * Carries out views in a process that is not ours (docs/adr/0001-real-processes.md). May be called under core locks: it never
 * waits for that process. Addresses are that process's, and numbers to us. `fd`: an object that holds nothing else than what
 * this viewer may see; it is dup'ed when it has to outlive the call.
 */
struct vmm_os_viewer;
struct vmm_lock_word;
struct vmm_os_viewer_ops {
	/* An inaccessible range, page-aligned; VMM_NO_MEMORY. */
	vmm_status (*reserve)(struct vmm_os_viewer *viewer, uint64_t size_bytes, char **address);
	/* Replaces, in one step, what was there. Wakes who sleeps because the range was frozen. */
	vmm_status (*map)(struct vmm_os_viewer *viewer, char *address, uint64_t length, int fd,
			  uint64_t offset, bool writable);
	void (*unmap)(struct vmm_os_viewer *viewer, char *address, uint64_t length);
	void (*release)(struct vmm_os_viewer *viewer, char *address, uint64_t size_bytes);
	/* From return until the next map or thaw no store through the range lands. VMM_NOT_SUPPORTED. */
	vmm_status (*freeze)(struct vmm_os_viewer *viewer, char *address, uint64_t length);
	void (*thaw)(struct vmm_os_viewer *viewer, char *address, uint64_t length);
	/*
	 * Makes the viewer's own memory at that range, with its content, part of an object that both sides have: *fd, the caller's from here on,
	 * from *offset. The range stays where it is, and no store of the viewer's is lost. The one operation that waits for
	 * him: to be called with no lock held. VMM_INVALID_PARAMETER: not all of it is memory that he reads and writes;
	 * VMM_NOT_SUPPORTED: it cannot be shared; VMM_NO_MEMORY; VMM_DEVICE_REMOVED: he is gone.
	 */
	vmm_status (*adopt)(struct vmm_os_viewer *viewer, char *address, uint64_t length, int *fd,
			    uint64_t *offset);
	/*
	 * base/lock_word.h. A place for that handle; NULL: none is to be had. The last three only where it is there.
	 * `distrust`: that process wrote there what it never should; it is cut off, soon.
	 */
	struct vmm_lock_word *(*take_word)(struct vmm_os_viewer *viewer, uint32_t handle);
	void (*give_word_back)(struct vmm_os_viewer *viewer, struct vmm_lock_word *word);
	uint64_t (*instructed)(
		struct vmm_os_viewer *viewer); /* so many instructions have been sent */
	void (*distrust)(struct vmm_os_viewer *viewer, const char *why);
};
struct vmm_os_viewer {
	const struct vmm_os_viewer_ops *ops;
	_Atomic uint64_t owner; /* of private objects; 0: not asked for yet */
};
/* Its number as an owner of private objects, which no other has, then or later. */
uint64_t vmm_os_viewer_owner(struct vmm_os_viewer *viewer);

/* ---- private objects: ranges of a memory object that somebody in another address space may be shown ----
 * A memory object of their owner's alone lies over the range of the permanent mapping: who uses that address, or what was made of
 * it (MDLs, bus addresses), reads and writes the private object. It is sealed against changes of its size. Whoever goes on
 * having it mapped after it was taken away has memory that nobody else uses; until then it may hold whatever its owner has there.
 *
 * What is used by nobody stays, for its owner to come again: nothing is zeroed then. What gives way to others is kept for its owner
 * as well, up to once the size of the memory object, if content does not matter there (vmm_os_private_lay). The caller sees to it that nobody uses
 * the range while something is laid there or taken away, and serialises all of these, and maps for viewers, of one memory object.
 */
/*
 * Afterwards all of the range shows objects of that owner: what it had there stays as it is, the rest is new, so it reads as
 * zero; and it counts as used. `fresh`: all of it is new; NULL: the rest may as well be what that owner had elsewhere in the memory
 * object, with its content. VMM_NO_MEMORY: also when descriptors or mappings have run out.
 */
vmm_status vmm_os_private_lay(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			      uint64_t owner, bool *fresh) VMM_MUST_CHECK;
/*
 * The same where nothing of others lies: what there is to be seen goes along, and under what is new nothing stays. Nobody writes
 * to the range meanwhile.
 */
vmm_status vmm_os_private_carry(const struct vmm_os_memory *memory, uint64_t offset,
				uint64_t length, uint64_t owner) VMM_MUST_CHECK;
/* What was laid counts as used no more, and is taken away, if it may go and is of no use to anybody. */
void vmm_os_private_leave(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			  bool may_go);
/* Might something be taken away by that? Not necessarily of the range alone. */
bool vmm_os_private_is_surplus(const struct vmm_os_memory *memory, uint64_t offset,
			       uint64_t length);
/* Does all of the range show objects of that owner, or is it all his? 0: does nothing lie there? */
bool vmm_os_private_is_of(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			  uint64_t owner);
/* The same of its first part: so many bytes from `offset` on all do, or all do not, as `is` says. */
uint64_t vmm_os_private_run(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			    uint64_t owner, bool *is);
/* What was there before anything was laid is there again. */
void vmm_os_private_take(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length);
/* The owner has gone: what it does not use is taken away now, the rest when it is left. */
void vmm_os_private_end(const struct vmm_os_memory *memory, uint64_t owner);

/* ---- CPU views: an address range that never moves, behind which memory is exchanged ---- */
struct vmm_os_view {
	struct vmm_os *os;
	struct vmm_os_viewer *viewer; /* NULL: of this process */
	char *address; /* NULL: not reserved; with a viewer a number, and no address of ours */
	uint64_t size_bytes;
	bool frozen;
};
/* Reserves address space only; touching it before a map faults. */
vmm_status vmm_os_view_reserve(struct vmm_os *os, uint64_t size_bytes,
			       struct vmm_os_view *view) VMM_MUST_CHECK;
/* In the address space of who looks through that viewer; NULL: in our own. */
vmm_status vmm_os_view_reserve_for(struct vmm_os *os, struct vmm_os_viewer *viewer,
				   uint64_t size_bytes, struct vmm_os_view *view) VMM_MUST_CHECK;
/*
 * Shows memory[memory_offset, +length) at view[view_offset, +length), atomically replacing what was
 * there: another thread that reads or writes the range meanwhile uses the old or the new memory,
 * never faults. A viewer is given the private object that lies there, or the object if it is whole or its own; that there is neither asserts.
 */
vmm_status vmm_os_view_map(struct vmm_os_view *view, uint64_t view_offset,
			   const struct vmm_os_memory *memory, uint64_t memory_offset,
			   uint64_t length) VMM_MUST_CHECK;
/*
 * The same, to be read alone: the view of a whole object, which is never frozen. Once somebody elsewhere has one, nobody gets a writable
 * mapping of the object any more, whatever he does with his descriptor.
 */
vmm_status vmm_os_view_map_read_only(struct vmm_os_view *view,
				     const struct vmm_os_memory *memory) VMM_MUST_CHECK;
/*
 * A descriptor of a whole object's that can only be read, and no way from it to one that can be written; the caller's. As of a view
 * that is to be read alone.
 */
vmm_status vmm_os_memory_read_only(const struct vmm_os_memory *memory, int *fd) VMM_MUST_CHECK;
/*
 * From now on whoever gets a view of the whole object to read is somebody who may also write to it, as long as that is not withdrawn: he may
 * have a descriptor for it. Those who have one then keep what they have mapped, and nobody else gets one.
 */
void vmm_os_memory_offer(const struct vmm_os_memory *memory);
void vmm_os_memory_withdraw(const struct vmm_os_memory *memory);
/* VMM_NOT_SUPPORTED: it is not offered. The caller's. */
vmm_status vmm_os_memory_writable(const struct vmm_os_memory *memory, int *fd) VMM_MUST_CHECK;
void vmm_os_view_unmap(struct vmm_os_view *view); /* back to reserved, inaccessible */
void vmm_os_view_release(struct vmm_os_view *view);
/*
 * Freeze: from return until the next vmm_os_view_map of the range (or thaw), a store by any thread
 * through the view blocks in the kernel instead of landing, so that content can be copied elsewhere
 * without losing one (PAG-16). Reads go on. VMM_NOT_SUPPORTED where the kernel offers no such thing
 * (userfaultfd write protection); on sim a no-op that succeeds, because nobody else runs.
 */
vmm_status vmm_os_view_freeze(struct vmm_os_view *view) VMM_MUST_CHECK;
void vmm_os_view_thaw(struct vmm_os_view *view);

/* ---- bulk copy: non-temporal above the cache size, memcpy below ---- */
void vmm_os_copy(void *destination, const void *source, size_t length);
void vmm_os_fill_u32(void *destination, uint32_t pattern,
		     size_t length); /* length: multiple of 4 */

/* ---- the CPU's caches ---- */
/*
 * Writes back and drops every line of the range, in all caches of the machine; done when it returns. How many lines that
 * were, 0 where the processor has no instruction for it: then nothing happened. The range is mapped.
 */
uint64_t vmm_os_cache_flush(const struct vmm_os *os, const void *address, uint64_t length);

/* ---- events of clients: eventfds, by their descriptors ---- */
/* One of our own for the same event. VMM_INVALID_HANDLE: the number is not a descriptor of an eventfd. */
vmm_status vmm_os_event_open(uint64_t handle, int *event) VMM_MUST_CHECK;
/* A new one, of the caller's; from 3 on, closed on exec. VMM_NO_MEMORY: no descriptors are left. */
vmm_status vmm_os_event_create(int *event) VMM_MUST_CHECK;
void vmm_os_event_set(int event); /* adds 1; never blocks: one that is full is set already */
void vmm_os_event_close(int event);

/* ---- tokens: descriptors that stand for an object of ours, passed on and closed like any other ---- */
struct vmm_os_token {
	int fd;                 /* ours */
	uint64_t device, inode; /* what all its handles have in common */
};
/* The name is what /proc shows. */
vmm_status vmm_os_token_create(const char *name, struct vmm_os_token *token) VMM_MUST_CHECK;
void vmm_os_token_destroy(struct vmm_os_token *token);
/* A new handle: a descriptor of the caller's from 3 on, closed on exec. */
vmm_status vmm_os_token_hand_out(const struct vmm_os_token *token, uint64_t *handle) VMM_MUST_CHECK;
/* Is a handle of it open, in whatever process? */
bool vmm_os_token_is_out(const struct vmm_os_token *token);
/* What a number names, without a descriptor of ours. VMM_INVALID_HANDLE: nothing that could be a token. */
vmm_status vmm_os_token_identify(uint64_t handle, struct vmm_os_token *token) VMM_MUST_CHECK;

/* One that came from a viewer. */
void vmm_os_descriptor_close(int fd);

/* ---- memory of others ---- */
/*
 * Can every page of the range be read and written? It is not touched in the asking, and has its pages from then on. False
 * also for NULL and for what is not whole pages.
 */
bool vmm_os_probe_writable(const void *address, uint64_t length);

#endif
