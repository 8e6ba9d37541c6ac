//! Calls whose arguments are generated from bytes: mostly typical values, sometimes arbitrary ones.

use super::{CALL, array::Array};
use crate::{
    calls::{
        broadcast::{gebr2d, gebs2d, trbr2d, trbs2d},
        combine::{gamn2d, gamx2d, gsum2d},
        handles, memory, parameters,
        point::{gerv2d, gesd2d, trrv2d, trsd2d},
        query, setup, teardown,
    },
    int::{Int, extent},
};
use blacs::Precision;

/// The only process of a program: its first context.
pub(super) struct Caller(Int);

/// The arguments of one call.
#[derive(Clone, Copy)]
struct Arguments {
    precision: Precision,
    context: Int,
    m: Int,
    n: Int,
    lda: Int,
    row: Int,
    column: Int,
    scope: u8,
    top: u8,
    uplo: u8,
    diag: u8,
    /// Selects the contents, the guards and one more argument.
    more: u8,
}

const PRECISIONS: [Precision; 6] =
    [Precision::I, Precision::S, Precision::D, Precision::C, Precision::Z, Precision::Long];

/// Returns a number that is mostly small, and sometimes at an end of its range.
fn number(byte: u8) -> Int {
    let low = Int::from(byte & 15);
    match byte >> 4 {
        0..=11 => Int::from(byte % 12),
        12 => -1 - low,
        13 => 1 << (2 * low),
        14 => Int::MAX - low,
        _ => Int::MIN + low,
    }
}

/// Returns mostly 0, the only coordinate of a process.
fn place(byte: u8) -> Int {
    if byte < 0xa0 { 0 } else { number(byte) }
}

/// Returns mostly one of the usual letters.
fn letter(byte: u8, usual: &[u8]) -> u8 {
    if byte < 0xe0 { usual[usize::from(byte) % usual.len()] } else { byte.wrapping_mul(37) }
}

impl Arguments {
    fn of(bytes: &[u8; CALL], context: Int) -> Self {
        let [_, precision, m, n, lda, row, column, scope, top, uplo, diag, more] = *bytes;
        Arguments {
            precision: PRECISIONS[usize::from(precision) % PRECISIONS.len()],
            context: if precision < 0xe0 { context } else { number(more) },
            m: number(m),
            n: number(n),
            lda: if lda < 0x80 { number(m).max(1).saturating_add(Int::from(lda & 7)) } else { number(lda) },
            row: place(row),
            column: place(column),
            scope: letter(scope, b"arcARC"),
            top: letter(top, b" idsm159tfhIH"),
            uplo: letter(uplo, b"ulUL"),
            diag: letter(diag, b"unUN"),
            more,
        }
    }

    /// Returns the number of elements from the first to the last one of a valid description; 0 if
    /// the description is invalid.
    fn elements(&self) -> usize {
        let (m, n, lda) = (extent(self.m), extent(self.n), extent(self.lda));
        match (m, n) {
            (0, _) | (_, 0) => 0,
            (_, 1) => m,
            _ if lda < m => 0,
            _ => (n - 1).saturating_mul(lda).saturating_add(m),
        }
    }

    fn matrix(&self) -> Option<Array> {
        Array::new(self.elements(), self.precision.bytes(), self.more, self.more & 1 == 1)
    }

    fn ints(&self, len: usize) -> Option<Array> {
        Array::new(len, size_of::<Int>(), self.more, self.more & 2 == 2)
    }

    /// Checks that only rows of the matrix have changed, not the memory between columns.
    fn check(&self, matrix: &Array) {
        let (size, apart) = (self.precision.bytes(), extent(self.lda).max(extent(self.m)).max(1));
        matrix.check(|byte| byte / size < self.elements() && byte / size % apart < extent(self.m));
    }
}

impl Caller {
    /// Makes a grid of one process.
    pub(super) fn begin() -> Self {
        let mut context = Array::new(1, size_of::<Int>(), 0, true).expect("a small array");
        setup::gridinit("blacs_gridinit", context.integers(), b'r', 1, 1);
        Caller(context.integers().get(0))
    }

    /// Makes the call that these bytes describe, unless its arrays would be too long.
    pub(super) fn call(&mut self, bytes: &[u8; CALL]) {
        let a = Arguments::of(bytes, self.0);
        let _ = match bytes[0] % 22 {
            0..=1 => message(&a),
            2..=3 => trapezoid(&a),
            4..=7 => broadcast(&a, bytes[0] % 22),
            8..=10 => combine(&a, bytes[0] % 22),
            11..=12 => grid(&a, bytes[0] % 22),
            13..=14 => parameter(&a, bytes[0] % 22),
            15 => asked(&a),
            16 => memory_of_the_fabric(&a),
            kind => end(&a, kind),
        };
    }
}

/// Sends to this process, and receives.
fn message(a: &Arguments) -> Option<()> {
    let (mut from, mut to) = (a.matrix()?, a.matrix()?);
    gesd2d("gesd2d", a.precision, a.context, a.m, a.n, from.source(), a.lda, a.row, a.column);
    from.check(|_| false);
    gerv2d("gerv2d", a.precision, a.context, a.m, a.n, to.sink(), a.lda, a.row, a.column);
    a.check(&to);
    Some(())
}

fn trapezoid(a: &Arguments) -> Option<()> {
    let (mut from, mut to) = (a.matrix()?, a.matrix()?);
    trsd2d("trsd2d", a.precision, a.context, a.uplo, a.diag, a.m, a.n, from.source(), a.lda, a.row, a.column);
    from.check(|_| false);
    trrv2d("trrv2d", a.precision, a.context, a.uplo, a.diag, a.m, a.n, to.sink(), a.lda, a.row, a.column);
    a.check(&to);
    Some(())
}

fn broadcast(a: &Arguments, kind: u8) -> Option<()> {
    let mut matrix = a.matrix()?;
    let (precision, context, scope, top) = (a.precision, a.context, a.scope, a.top);
    match kind {
        4 => gebs2d("gebs2d", precision, context, scope, top, a.m, a.n, matrix.source(), a.lda),
        5 => gebr2d("gebr2d", precision, context, scope, top, a.m, a.n, matrix.sink(), a.lda, a.row, a.column),
        6 => trbs2d("trbs2d", precision, context, scope, top, a.uplo, a.diag, a.m, a.n, matrix.source(), a.lda),
        _ => trbr2d(
            "trbr2d",
            precision,
            context,
            scope,
            top,
            a.uplo,
            a.diag,
            a.m,
            a.n,
            matrix.sink(),
            a.lda,
            a.row,
            a.column,
        ),
    }
    a.check(&matrix);
    Some(())
}

fn combine(a: &Arguments, kind: u8) -> Option<()> {
    let mut matrix = a.matrix()?;
    let (precision, context, scope, top) = (a.precision, a.context, a.scope, a.top);
    if kind == 8 {
        gsum2d("gsum2d", precision, context, scope, top, a.m, a.n, matrix.sink(), a.lda, a.row, a.column);
        a.check(&matrix);
        return Some(());
    }
    // Without rows, positions of winners are not written; with -1, there are no arrays for them.
    let ldia = number(a.uplo.wrapping_add(a.diag));
    let places = if a.elements() == 0 { 0 } else { extent(a.n).saturating_mul(extent(ldia)) };
    let (mut rows, mut columns) = (a.ints(places)?, a.ints(places)?);
    let extremes = if kind == 9 { gamx2d } else { gamn2d };
    extremes(
        "gamx2d",
        precision,
        context,
        scope,
        top,
        a.m,
        a.n,
        matrix.sink(),
        a.lda,
        rows.integers(),
        columns.integers(),
        ldia,
        a.row,
        a.column,
    );
    a.check(&matrix);
    let size = size_of::<Int>();
    for array in [rows, columns] {
        array.check(|byte| byte / size < places && byte / size % extent(ldia).max(1) < extent(a.m));
    }
    Some(())
}

fn grid(a: &Arguments, kind: u8) -> Option<()> {
    let mut context = Array::new(1, size_of::<Int>(), if a.more < 0xe0 { 0 } else { a.more }, true)?;
    if kind == 11 {
        setup::gridinit("blacs_gridinit", context.integers(), letter(a.uplo, b"rcRC"), a.row.wrapping_add(1), a.n);
    } else {
        // A grid of more than one process is rejected before the array is read.
        let mut map = Array::new(1, size_of::<Int>(), if a.diag < 0xc0 { 0 } else { a.diag }, a.more & 1 == 1)?;
        setup::gridmap("blacs_gridmap", context.integers(), map.integers(), a.lda, a.row.wrapping_add(1), a.n);
        map.check(|_| false);
    }
    context.check(|byte| byte < size_of::<Int>());
    Some(())
}

fn parameter(a: &Arguments, kind: u8) -> Option<()> {
    let mut value = a.ints(2)?;
    let what = if a.uplo < 0x80 { Int::from(a.more % 20) } else { number(a.more) };
    if kind == 13 {
        parameters::get("blacs_get", a.context, what, value.integers());
        value.check(|byte| byte < size_of::<Int>() * if what == 1 { 2 } else { 1 });
    } else {
        value.integers().set(0, a.m);
        parameters::set("blacs_set", a.context, what, value.integers());
        value.check(|byte| byte < size_of::<Int>());
    }
    Some(())
}

/// Query routines.
fn asked(a: &Arguments) -> Option<()> {
    let [mut one, mut other, mut third, mut fourth] = [a.ints(1)?, a.ints(1)?, a.ints(1)?, a.ints(1)?];
    let int = |byte: usize| byte < size_of::<Int>();
    match a.more % 8 {
        0 => drop(query::pnum("blacs_pnum", a.context, a.m, a.n)),
        1 => query::pcoord("blacs_pcoord", a.context, a.m, one.integers(), other.integers()),
        2 => query::gridinfo(
            "blacs_gridinfo",
            a.context,
            one.integers(),
            other.integers(),
            third.integers(),
            fourth.integers(),
        ),
        3 => query::barrier("blacs_barrier", a.context, a.scope),
        4 => drop(handles::to_system("blacs2sys_handle", a.m)),
        5 => drop(handles::from_system("sys2blacs_handle", a.m)),
        6 => handles::free("free_blacs_system_handle", a.m),
        _ => setup::pinfo("blacs_pinfo", one.integers(), other.integers()),
    }
    [one, other, third, fourth].iter().for_each(|array| array.check(int));
    Some(())
}

/// Allocates, frees, and frees an unknown address.
fn memory_of_the_fabric(a: &Arguments) -> Option<()> {
    let bytes = extent(a.m).saturating_mul(1 << (a.more & 31));
    let start = memory::alloc("blacs_fmpl_alloc", bytes).addr();
    memory::free("blacs_fmpl_free", start.wrapping_add(extent(a.row)));
    memory::free("blacs_fmpl_free", start);
    Some(())
}

/// Routines that free buffers or end the grid or the program.
fn end(a: &Arguments, kind: u8) -> Option<()> {
    match kind {
        17 | 18 => teardown::freebuff("blacs_freebuff", a.context, a.m),
        19 => teardown::gridexit("blacs_gridexit", a.context),
        20 => teardown::exit("blacs_exit", a.m),
        _ => teardown::abort("blacs_abort", a.context, a.m),
    }
    Some(())
}
