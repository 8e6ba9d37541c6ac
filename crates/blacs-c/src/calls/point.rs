//! Messages between two processes.

use super::{coordinates, rectangle, trapezoid};
use crate::{
    boundary::Call,
    int::Int,
    matrix::{Sink, Source},
    run::run,
};
use blacs::{Precision, Shape};

pub(crate) fn gesd2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    m: Int,
    n: Int,
    a: Source,
    lda: Int,
    row: Int,
    column: Int,
) {
    send(Call { routine, context }, precision, &rectangle(m, n, lda), a, (row, column));
}

pub(crate) fn gerv2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    m: Int,
    n: Int,
    a: Sink,
    lda: Int,
    row: Int,
    column: Int,
) {
    recv(Call { routine, context }, precision, &rectangle(m, n, lda), a, (row, column));
}

pub(crate) fn trsd2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    uplo: u8,
    diag: u8,
    m: Int,
    n: Int,
    a: Source,
    lda: Int,
    row: Int,
    column: Int,
) {
    send(Call { routine, context }, precision, &trapezoid(uplo, diag, m, n, lda), a, (row, column));
}

pub(crate) fn trrv2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    uplo: u8,
    diag: u8,
    m: Int,
    n: Int,
    a: Sink,
    lda: Int,
    row: Int,
    column: Int,
) {
    recv(Call { routine, context }, precision, &trapezoid(uplo, diag, m, n, lda), a, (row, column));
}

fn send(call: Call, precision: Precision, shape: &Shape, a: Source, (row, column): (Int, Int)) {
    call.run(|library| {
        let grid = library.contexts.open(call.context)?;
        let to = coordinates(grid, row, column)?;
        Ok(run(grid.send_bytes(precision, shape, &library.lent(a, shape, precision), to))?)
    });
}

fn recv(call: Call, precision: Precision, shape: &Shape, a: Sink, (row, column): (Int, Int)) {
    call.run(|library| {
        let grid = library.contexts.open(call.context)?;
        let from = coordinates(grid, row, column)?;
        Ok(run(grid.recv_bytes(precision, shape, &mut library.lent(a, shape, precision), from))?)
    });
}
