/* SPDX-License-Identifier: MIT */
/*
 * The steps of a context's queue (src/sched/completion/steps.c): a wait for a fence, a DMA buffer
 * behind the wait, and a signal behind the buffer. The thread that raises the fence ends the wait
 * under the sync lock. After it has released the lock it pushes the wait on the completion list and
 * wakes the worker. If the fence is raised by a signal of a queue (LOOKS), that thread takes the
 * steps itself instead. The worker, and the thread that completes the buffer, take the steps that
 * can be taken, one at a time. check_spin.py checks all interleavings:
 *
 *   SUB-28, MFN-29  the buffer is released only when the wait is satisfied or given up
 *   MFN-28          the signal is performed once, and only when the buffer is complete
 *   MFN-30          in the end no step is left that could be taken (no wake-up is lost)
 *   TDRS-11         no signal is performed whose turn came after the loss of the context's device
 *   MFN-33, Q-46    the end of a context (ENDS) completes whether or not the fence is raised, and
 *                   no thread touches the context afterwards
 *
 * ENDS     the context is destroyed at the same time
 * LOST     its device is lost at the same time
 * NEVER    no thread raises the fence
 * LOOKS    a signal of a queue raises the fence
 *
 * Four mistakes that the check must find:
 * FORGETS_TO_WAKE  the raising thread does not wake the worker
 * LOOKS_FIRST      the thread of a queue's signal takes steps before it raises the fence
 * ENDS_EARLY       the end of the context waits until the queue is empty, but not until the thread
 *                  that takes its steps has finished
 * LEAVES_FLAG      a thread that found no further step releases the state lock before it clears
 *                  `advancing`
 */
#define AT_WAIT   0
#define AT_BUFFER 1
#define AT_SIGNAL 2
#define EMPTY     3

byte at, work, seen_work;
bool state_lock, sync_lock;
bool word, waiters, waiting, wait_done;   /* the fence, and the wait in its heap */
bool listed, begun, popped, over, satisfied;
bool advancing, ending, given_up, lost, freed;
bool released, complete, cancelled, signals;
bool raising, losing, gpu_done;

inline acquire(l) { atomic { !l -> l = 1 } }
inline release(l) { l = 0 }

#define HOPELESS   (lost || given_up)
#define CAN_WAIT   (!begun || popped || (!over && (ending || HOPELESS)))
#define CAN_SIGNAL (complete || HOPELESS)
#define ACTIONABLE \
	((at == AT_WAIT && CAN_WAIT) || at == AT_BUFFER || (at == AT_SIGNAL && CAN_SIGNAL))

/* steps.c: check_wait, with packet.c: begin and withdraw. */
inline take_wait()
{
	if
	:: popped -> satisfied = 1; at = AT_BUFFER
	:: !popped && !begun && !HOPELESS ->
		begun = 1;
		acquire(sync_lock);
		waiters = 1;
		if
		:: word -> waiters = 0; satisfied = 1; at = AT_BUFFER
		:: else -> waiting = 1
		fi;
		release(sync_lock)
	:: !popped && !begun && HOPELESS -> given_up = 1; at = AT_BUFFER
	:: !popped && begun ->
		acquire(sync_lock);
		if
		:: wait_done -> over = 1
		:: else -> waiting = 0; waiters = 0; given_up = 1; at = AT_BUFFER
		fi;
		release(sync_lock)
	fi
}

/* steps.c: advance_context_locked. The state lock is released while a signal is done. */
inline go()
{
	advancing = 1;
	do
	:: at == AT_WAIT && CAN_WAIT -> assert(!freed); take_wait()
	:: at == AT_BUFFER ->
		assert(satisfied || given_up || lost);
		at = AT_SIGNAL;
		released = 1
	:: at == AT_SIGNAL && CAN_SIGNAL ->
		drop = !complete || HOPELESS;
		at = EMPTY;
		release(state_lock);
		if
		:: !drop -> assert(complete && !cancelled && !signals); signals = 1
		:: else
		fi;
		acquire(state_lock)
	:: !ACTIONABLE -> break
	od;
	assert(!freed);
#ifdef LEAVES_FLAG
	release(state_lock);
	acquire(state_lock);
#endif
	advancing = 0
}

/* steps.c: vmm_steps_advance */
inline advance()
{
	acquire(state_lock);
	if
	:: listed -> listed = 0; assert(!freed); popped = 1
	:: else
	fi;
	if
	:: !freed && !advancing && ACTIONABLE -> go()
	:: else
	fi;
	release(state_lock)
}

/* wait.c: raise, deliver, flush; steps.c: on_wait_completed. */
proctype raiser()
{
	bool drop, ended = 0;

#ifdef LOOKS_FIRST
	advance();
#endif
	word = 1;
	if
	:: waiters ->
		acquire(sync_lock);
		if
		:: waiting -> waiting = 0; waiters = 0; wait_done = 1; ended = 1
		:: else
		fi;
		release(sync_lock);
		if
		:: ended ->
			assert(!freed);
			listed = 1;
#if !defined(FORGETS_TO_WAKE) && !defined(LOOKS) && !defined(LOOKS_FIRST)
			work++
#endif
		:: else
		fi
	:: else
	fi;
#ifdef LOOKS
	advance();
#endif
	raising = 0
}

proctype worker()
{
	bool drop;
	byte seen;

	do
	:: seen = work;
		advance();
end_idle:	work != seen
	od
}

/* The buffer, once it is in the prepare queue. The DPC that retires it continues the steps. */
proctype gpu()
{
	bool drop;

end_waits: released;
	acquire(state_lock);
	cancelled = HOPELESS;
	complete = 1;
	release(state_lock);
	advance();
	gpu_done = 1
}

proctype loser()
{
	bool drop;

	lost = 1;
	advance();
	losing = 0
}

proctype ender()
{
	bool drop, is_empty = 0;

	acquire(state_lock);
	ending = 1;
	release(state_lock);
	do
	:: !is_empty ->
		advance();
		acquire(state_lock);
#ifdef ENDS_EARLY
		is_empty = at == EMPTY;
#else
		is_empty = at == EMPTY && !advancing;
#endif
		if
		:: is_empty -> freed = 1
		:: else
		fi;
		release(state_lock);
		if
		:: !is_empty -> /* it sleeps until something may have changed */
			(ACTIONABLE || listed || advancing || at == EMPTY)
		:: else
		fi
	:: is_empty -> break
	od
}

/* Runs when no other process can run. */
proctype checker()
{
	timeout;
	assert(!ACTIONABLE || at == EMPTY);
	assert(!listed);
#ifndef NEVER
	assert(at == EMPTY);
	assert(signals || HOPELESS);
#endif
#ifdef ENDS
	assert(freed);
#endif
}

init
{
	atomic {
#ifndef NEVER
		raising = 1;
		run raiser();
#endif
		run worker();
		run gpu();
#ifdef LOST
		losing = 1;
		run loser();
#endif
#ifdef ENDS
		run ender();
#endif
		run checker()
	}
}
