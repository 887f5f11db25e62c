/* SPDX-License-Identifier: MIT */
/*
 * The call gate of src/port. A DDI call stores the port in its thread's hazard pointer and then
 * reads `suspended`, with plain instructions. The thread that closes the gate sets `suspended` and
 * then reads all hazard pointers, after an asymmetric barrier. check_spin.py checks all
 * interleavings: no call is inside while another thread has exclusive use, and that thread does not
 * sleep forever (an invalid end state).
 *
 * Each thread's store of its hazard pointer stays in a store buffer of one entry, which empties at
 * any later time, at the thread's next store, and at a barrier.
 *
 * Three mistakes that the check must find:
 * NO_BARRIER   the closing thread reads the hazard pointers without a barrier
 * LOOK_FIRST   a call reads `suspended` before it stores its hazard pointer
 * LEAVE_FIRST  a call that leaves reads `suspended` before it clears its hazard pointer
 */
#define CALLS 2

bit word[CALLS], buffered[CALLS], value[CALLS]; /* hazard pointers; the store buffers */
bit inside[CALLS], suspended, exclusive;
byte gate; /* the futex */

inline drain(i) { atomic { if :: buffered[i] -> word[i] = value[i]; buffered[i] = 0 :: else fi } }
inline store(i, v) { drain(i); atomic { value[i] = v; buffered[i] = 1 } }
inline barrier() { drain(0); drain(1) }

active proctype processor()
{
end:	do
	:: atomic { buffered[0] -> word[0] = value[0]; buffered[0] = 0 }
	:: atomic { buffered[1] -> word[1] = value[1]; buffered[1] = 0 }
	od
}

/* gate.c: vmm_port_end_slow */
inline end_slow()
{
	barrier();
	if
	:: !word[0] && !word[1] -> gate++
	:: else
	fi
}

inline leave(i)
{
#ifdef LEAVE_FIRST
	closed = suspended;
	store(i, 0);
#else
	store(i, 0);
	closed = suspended;
#endif
	if
	:: closed -> end_slow()
	:: else
	fi
}

proctype call(byte i)
{
	bit closed;

#ifdef LOOK_FIRST
	closed = suspended;
	store(i, 1);
#else
	store(i, 1);
	closed = suspended;
#endif
	if
	:: !closed -> inside[i] = 1; assert(!exclusive); inside[i] = 0
	:: closed
	fi;
	leave(i)
}

/* gate.c: close_gate, wait_until_empty */
active proctype closer()
{
	byte seen;

	suspended = 1;
	do
	:: seen = gate;
#ifndef NO_BARRIER
	   barrier();
#endif
	   if
	   :: !word[0] && !word[1] -> break
	   :: else -> gate != seen
	   fi
	od;
	exclusive = 1;
	assert(!inside[0] && !inside[1]);
	exclusive = 0
}

init { atomic { run call(0); run call(1) } }
