/* SPDX-License-Identifier: MIT */
/*
 * Annotations of driver source that wddm_annotations.h does not have. They expand to nothing here.
 * The names of the first generation (__in, __out ...) are names of parameters in the C++ library,
 * so a source that uses that library includes it before this header; drivers do not use it.
 * Source: the SAL pages of the Visual C++ documentation, and the pages about annotations for
 * drivers.
 */
#ifndef WDDM_SAL_H
#define WDDM_SAL_H

#include <wddm_annotations.h>

#define _Notliteral_
#define _Literal_
#define _Printf_format_string_
#define _Scanf_format_string_
#define _Pre_
#define _Post_
#define _Prepost_
#define _Valid_
#define _Notvalid_
#define _Pre_valid_
#define _Post_valid_
#define _Post_invalid_
#define _Pre_notnull_
#define _Post_notnull_
#define _Pre_maybenull_
#define _Post_maybenull_
#define _Pre_null_
#define _Post_null_
#define _Pre_z_
#define _Post_z_
#define _Const_
#define _Inout_z_
#define _Inout_opt_z_
#define _Out_z_cap_
#define _Ret_z_
#define _Ret_maybenull_
#define _Ret_maybenull_z_
#define _Ret_notnull_
#define _Ret_null_
#define _Ret_valid_
#define _Outref_
#define _Outref_result_maybenull_
#define _Outptr_result_z_
#define _Outptr_opt_result_z_
#define _Outptr_result_nullonfailure_
#define _Outptr_opt_result_maybenull_
#define _COM_Outptr_
#define _COM_Outptr_opt_
#define _Result_nullonfailure_
#define _Result_zeroonfailure_
#define _Always_
#define _On_failure_
#define _Analysis_noreturn_
#define _Raises_SEH_exception_
#define _Maybe_raises_SEH_exception_
#define _Reserved_
#define _Frees_ptr_
#define _Frees_ptr_opt_
#define _Pre_defensive_
#define _Post_defensive_
#define _Unreferenced_parameter_
#define _Kernel_clear_do_init_
#define _Kernel_IoGetDmaAdapter_
#define _Requires_no_locks_held_
#define _Interlocked_
#define _Interlocked_operand_
#define _No_competing_thread_
#define _Benign_race_begin_
#define _Benign_race_end_
#define _Points_to_data_
#define _Enum_is_bitflag_
#define _Strict_type_match_
#define _Deref_out_
#define _Deref_opt_out_
#define _Deref_post_z_
#define __in_z
#define __in_opt_z
#define __inout_z
#define __out_z
#define __reserved
#define __checkReturn
#define __deref_out
#define __deref_out_opt
#define __deref_opt_out
#define __deref_opt_out_opt
#define __deref_inout
#define __deref_inout_opt
#define __nullterminated
#define __notnull
#define __maybenull
#define __null
#define __valid
#define __notvalid
#define __callback
#define __format_string
#define __drv_aliasesMem
#define __drv_sameIRQL
#define __drv_nonConst
#define __drv_constant
#define __drv_interlocked
#define __drv_inTry
#define __drv_notInTry
#define __drv_useCancelIRQL
#define __drv_clearDoInit
#define __deref
#define __refparam
#define __post
#define __pre
#define __exceptthat
#define __drv_mustHoldCriticalRegion
#define __fallthrough
#define __nothrow
#define __readonly
#define __notreadonly
#define __maybereadonly
#define _IRQL_saves_
#define _IRQL_restores_
#define _IRQL_uses_cancel_
#define _IRQL_is_cancel_
#define _Kernel_entry_always_
#define __override
#define __drv_savesIRQL
#define __drv_restoresIRQL
#define __drv_isObjectPointer
#define _At_buffer_(t, i, c, a)
#define _Group_(a)
#define _IRQL_saves_global_(k, p)
#define _IRQL_restores_global_(k, p)
#define _IRQL_always_function_max_(i)
#define _IRQL_always_function_min_(i)
#define _Acquires_lock_(l)
#define _Releases_lock_(l)
#define _Requires_lock_held_(l)
#define _Requires_lock_not_held_(l)
#define _Acquires_exclusive_lock_(l)
#define _Releases_exclusive_lock_(l)
#define _Acquires_shared_lock_(l)
#define _Releases_shared_lock_(l)
#define _Requires_exclusive_lock_held_(l)
#define _Requires_shared_lock_held_(l)
#define _Has_lock_kind_(k)
#define _Has_lock_level_(k)
#define _Lock_level_order_(a, b)
#define _Guarded_by_(l)
#define _Write_guarded_by_(l)
#define _Create_lock_level_(l)
#define _Post_same_lock_(a, b)
#define _Internal_set_lock_count_(l, c)
#define _Acquires_nonreentrant_lock_(l)
#define _Releases_nonreentrant_lock_(l)
#define _Acquires_spin_lock_(l)
#define _Releases_spin_lock_(l)
#define _Ret_range_(a, b)
#define _Deref_in_range_(a, b)
#define _Deref_out_range_(a, b)
#define _Inout_range_(a, b)
#define _Deref_inout_range_(a, b)
#define _In_reads_z_(a)
#define _In_reads_opt_z_(a)
#define _In_reads_or_z_(a)
#define _In_reads_to_ptr_(a)
#define _Out_writes_z_(a)
#define _Out_writes_opt_z_(a)
#define _Out_writes_bytes_to_opt_(a, b)
#define _Out_writes_bytes_all_(a)
#define _Out_writes_bytes_all_opt_(a)
#define _Out_writes_all_opt_(a)
#define _Inout_updates_z_(a)
#define _Inout_updates_opt_z_(a)
#define _Inout_updates_bytes_to_(a, b)
#define _Inout_updates_all_(a)
#define _Inout_updates_bytes_all_(a)
#define _Outptr_result_buffer_(a)
#define _Outptr_opt_result_buffer_(a)
#define _Outptr_result_buffer_maybenull_(a)
#define _Outptr_result_bytebuffer_(a)
#define _Outptr_opt_result_bytebuffer_(a)
#define _Outptr_result_bytebuffer_maybenull_(a)
#define _Outptr_result_buffer_to_(a, b)
#define _Ret_writes_(a)
#define _Ret_writes_z_(a)
#define _Ret_writes_bytes_(a)
#define _Ret_writes_maybenull_(a)
#define _Ret_writes_bytes_maybenull_(a)
#define _Ret_writes_to_(a, b)
#define _Field_size_full_opt_(a)
#define _Struct_size_bytes_(a)
#define _Readable_bytes_(a)
#define _Writable_bytes_(a)
#define _Readable_elements_(a)
#define _Writable_elements_(a)
#define _Pre_readable_size_(a)
#define _Pre_writable_size_(a)
#define _Pre_readable_byte_size_(a)
#define _Pre_writable_byte_size_(a)
#define _Post_readable_size_(a)
#define _Post_writable_size_(a)
#define _Post_readable_byte_size_(a)
#define _Post_writable_byte_size_(a)
#define _Pre_satisfies_(e)
#define _Post_satisfies_(e)
#define _Satisfies_(e)
#define _Post_equal_to_(e)
#define _Pre_equal_to_(e)
#define _Null_terminated_n_(a)
#define _Analysis_assume_(e)
#define _Analysis_assume_nullterminated_(e)
#define _Analysis_assume_lock_held_(l)
#define _Analysis_assume_lock_acquired_(l)
#define _Analysis_assume_lock_released_(l)
#define _Use_decl_anno_impl_(a)
#define _Dispatch_type_(a)
#define _Kernel_requires_resource_held_(a)
#define _Kernel_requires_resource_not_held_(a)
#define _Kernel_acquires_resource_(a)
#define _Kernel_releases_resource_(a)
#define __analysis_assume(e)
#define __analysis_assert(e)
#define __analysis_suppress_lock_checking(l)
#define _Printf_format_string_params_(n)
#define __inout_ecount_opt(n)
#define __inout_bcount_opt(n)
#define __in_ecount_z(n)
#define __out_ecount_z(n)
#define __out_ecount_part(n, m)
#define __out_bcount_part(n, m)
#define __out_ecount_full(n)
#define __out_bcount_full(n)
#define __out_ecount_part_opt(n, m)
#define __out_bcount_part_opt(n, m)
#define __inout_ecount_part(n, m)
#define __inout_bcount_part(n, m)
#define __deref_out_ecount(n)
#define __deref_out_bcount(n)
#define __deref_out_ecount_opt(n)
#define __deref_out_bcount_opt(n)
#define __field_ecount_part(n, m)
#define __field_bcount_part(n, m)
#define __field_xcount(n)
#define __struct_bcount(n)
#define __success(e)
#define __range(a, b)
#define __in_range(a, b)
#define __out_range(a, b)
#define __in_xcount(n)
#define __out_xcount(n)
#define __control_entrypoint(k)
#define __data_entrypoint(k)
#define __typefix(t)
#define __bcount(n)
#define __ecount(n)
#define __drv_raisesIRQL(i)
#define __drv_setsIRQL(i)
#define __drv_savesIRQLGlobal(k, p)
#define __drv_restoresIRQLGlobal(k, p)
#define __drv_maxFunctionIRQL(i)
#define __drv_minFunctionIRQL(i)
#define __drv_allocatesMem(k)
#define __drv_freesMem(k)
#define __drv_preferredFunction(f, w)
#define __drv_dispatchType(t)
#define __drv_when(c, a)
#define __drv_at(t, a)
#define __drv_in(a)
#define __drv_out(a)
#define __drv_inout(a)
#define __drv_in_deref(a)
#define __drv_out_deref(a)
#define __drv_arg(t, a)
#define __drv_acquiresResource(k)
#define __drv_releasesResource(k)
#define __drv_acquiresExclusiveResource(k)
#define __drv_releasesExclusiveResource(k)
#define __drv_mustHold(k)
#define __drv_neverHold(k)
#define __drv_valueIs(v)
#define __drv_reportError(s)
#define __drv_ret(a)
#define __drv_fun(a)
#define __drv_declspec(a)
#define __drv_strictTypeMatch(m)
#define __drv_strictType(t, m)

#endif
