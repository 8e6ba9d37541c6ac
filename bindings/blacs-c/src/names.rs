//! All names that the library exports, with their arguments, in a single list.
//!
//! Each routine has two names. Its Fortran name ends in `_`, and all arguments are passed by address;
//! the lengths of texts, which Fortran compilers append, are not declared here: caller and callee need
//! not agree on arguments after the last one that is used. Its C name begins with `C`, and scalars are
//! passed by value.
//!
//! # Safety
//! All functions of this module have the same precondition, which BLACS requires of the program
//! anyway: all arguments are as described in `blacs_fmpl.h`.

#![allow(unsafe_code)]

use crate::{
    arguments::{Integers, integer, letter},
    calls::{
        broadcast::{gebr2d, gebs2d, trbr2d, trbs2d},
        combine::{gamn2d, gamx2d, gsum2d},
        handles, memory, parameters,
        point::{gerv2d, gesd2d, trrv2d, trsd2d},
        query, setup, teardown,
    },
    clock,
    int::Int,
    matrix::{Sink, Source},
};
use blacs::Precision;
use core::ffi::{c_char, c_void};

/// The C type of an argument of this kind.
macro_rules! c_type {
    (int) => { Int };
    (letter) => { *const c_char };
    (integers) => { *mut Int };
    (source) => { *const c_void };
    (sink) => { *mut c_void };
}

/// The Fortran type of an argument of this kind.
macro_rules! fortran_type {
    (int) => { *const Int };
    ($kind:ident) => { c_type!($kind) };
}

/// Converts an argument of a C name into a value.
macro_rules! c_value {
    (int, $given:ident) => {
        $given
    };
    (letter, $given:ident) => {
        letter($given)
    };
    (integers, $given:ident) => {
        Integers::new($given)
    };
    (source, $given:ident) => {
        Source::new($given)
    };
    (sink, $given:ident) => {
        Sink::new($given)
    };
}

/// Converts an argument of a Fortran name into a value.
macro_rules! fortran_value {
    (int, $given:ident) => {
        integer($given)
    };
    ($kind:ident, $given:ident) => {
        c_value!($kind, $given)
    };
}

/// Calls `path` with a routine's name, the bracketed arguments, and the routine's arguments.
macro_rules! call {
    ($path:path, [$($more:expr)?], $($argument:ident),*) => { $path(NAME, $($more,)? $($argument),*) };
}

/// Exports routines: each calls `path` with its name, the bracketed arguments, and its arguments.
macro_rules! routines {
    ($letter:literal, $more:tt: $(
        $stem:ident($($argument:ident: $kind:ident),*) $(-> $out:ty)? = $path:path;
    )*) => { $(
        mod $stem {
            #[allow(unused_imports, reason = "not all are used by all")]
            use super::*;

            const NAME: &str = concat!($letter, stringify!($stem));

            /// # Safety
            /// The arguments are those that the header describes.
            // SAFETY: the name is BLACS's; a program has one BLACS.
            #[unsafe(export_name = concat!("C", $letter, stringify!($stem)))]
            unsafe extern "C" fn for_c($($argument: c_type!($kind)),*) $(-> $out)? {
                $(
                    // SAFETY: guaranteed by the caller.
                    #[allow(unused_unsafe, reason = "integers are passed as they are")]
                    let $argument = unsafe { c_value!($kind, $argument) };
                )*
                call!($path, $more, $($argument),*)
            }

            /// # Safety
            /// The arguments are those that the header describes.
            // SAFETY: as above.
            #[unsafe(export_name = concat!($letter, stringify!($stem), "_"))]
            unsafe extern "C" fn for_fortran($($argument: fortran_type!($kind)),*) $(-> $out)? {
                $(
                    // SAFETY: guaranteed by the caller.
                    let $argument = unsafe { fortran_value!($kind, $argument) };
                )*
                call!($path, $more, $($argument),*)
            }
        }
    )* };
}

routines! { "", []:
    blacs_pinfo(number: integers, processes: integers) = setup::pinfo;
    blacs_setup(number: integers, processes: integers) = setup::pinfo;
    blacs_get(context: int, what: int, value: integers) = parameters::get;
    blacs_set(context: int, what: int, value: integers) = parameters::set;
    blacs_gridinit(context: integers, order: letter, rows: int, columns: int) = setup::gridinit;
    blacs_gridmap(context: integers, processes: integers, leading: int, rows: int, columns: int) = setup::gridmap;

    blacs_freebuff(context: int, wait: int) = teardown::freebuff;
    blacs_gridexit(context: int) = teardown::gridexit;
    blacs_abort(context: int, error: int) = teardown::abort;
    blacs_exit(go_on: int) = teardown::exit;

    blacs_gridinfo(context: int, rows: integers, columns: integers, row: integers, column: integers) = query::gridinfo;
    blacs_pnum(context: int, row: int, column: int) -> Int = query::pnum;
    blacs_pcoord(context: int, number: int, row: integers, column: integers) = query::pcoord;
    blacs_barrier(context: int, scope: letter) = query::barrier;

    dwalltime00() -> f64 = clock::wall_time;
    dcputime00() -> f64 = clock::cpu_time;

    ksendid(context: int, row: int, column: int) -> Int = handles::message_id;
    krecvid(context: int, row: int, column: int) -> Int = handles::message_id;
    kbsid(context: int, scope: letter) -> Int = handles::scope_id;
    kbrid(context: int, scope: letter, row: int, column: int) -> Int = handles::scope_id_from;
    blacs2sys_handle(handle: int) -> Int = handles::to_system;
    sys2blacs_handle(system: int) -> Int = handles::from_system;
    free_blacs_system_handle(handle: int) = handles::free;
}

/// Exports the routines of one precision.
macro_rules! of_precision {
    ($module:ident, $letter:literal, $precision:expr) => {
        mod $module {
            use super::*;

            const PRECISION: Precision = $precision;

            routines! { $letter, [PRECISION]:
                gesd2d(context: int, m: int, n: int, a: source, lda: int, row: int, column: int) = gesd2d;
                gerv2d(context: int, m: int, n: int, a: sink, lda: int, row: int, column: int) = gerv2d;
                trsd2d(
                    context: int, uplo: letter, diag: letter, m: int, n: int, a: source, lda: int,
                    row: int, column: int
                ) = trsd2d;
                trrv2d(
                    context: int, uplo: letter, diag: letter, m: int, n: int, a: sink, lda: int,
                    row: int, column: int
                ) = trrv2d;

                gebs2d(context: int, scope: letter, top: letter, m: int, n: int, a: source, lda: int) = gebs2d;
                gebr2d(
                    context: int, scope: letter, top: letter, m: int, n: int, a: sink, lda: int,
                    row: int, column: int
                ) = gebr2d;
                trbs2d(
                    context: int, scope: letter, top: letter, uplo: letter, diag: letter, m: int, n: int,
                    a: source, lda: int
                ) = trbs2d;
                trbr2d(
                    context: int, scope: letter, top: letter, uplo: letter, diag: letter, m: int, n: int,
                    a: sink, lda: int, row: int, column: int
                ) = trbr2d;

                gsum2d(
                    context: int, scope: letter, top: letter, m: int, n: int, a: sink, lda: int,
                    row: int, column: int
                ) = gsum2d;
                gamx2d(
                    context: int, scope: letter, top: letter, m: int, n: int, a: sink, lda: int,
                    rows: integers, columns: integers, ldia: int, row: int, column: int
                ) = gamx2d;
                gamn2d(
                    context: int, scope: letter, top: letter, m: int, n: int, a: sink, lda: int,
                    rows: integers, columns: integers, ldia: int, row: int, column: int
                ) = gamn2d;
            }
        }
    };
}

/// The precision of `INTEGER`.
const INTEGER: Precision = if size_of::<Int>() == 8 { Precision::Long } else { Precision::I };

of_precision!(i, "i", INTEGER);
of_precision!(s, "s", Precision::S);
of_precision!(d, "d", Precision::D);
of_precision!(c, "c", Precision::C);
of_precision!(z, "z", Precision::Z);

/// Returns fabric memory; null if memory runs out.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
extern "C" fn blacs_fmpl_alloc(bytes: usize) -> *mut c_void {
    memory::alloc("blacs_fmpl_alloc", bytes).cast()
}

/// Frees memory of `blacs_fmpl_alloc`.
///
/// # Safety
/// The memory is no longer used.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn blacs_fmpl_free(start: *mut c_void) {
    memory::free("blacs_fmpl_free", start.addr());
}
