//! Broadcasts.

use super::{coordinates, rectangle, trapezoid};
use crate::{
    boundary::Call,
    int::Int,
    letters::{scope, topology},
    matrix::{Sink, Source},
    run::run,
};
use blacs::{Precision, Shape};

pub(crate) fn gebs2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    scope: u8,
    top: u8,
    m: Int,
    n: Int,
    a: Source,
    lda: Int,
) {
    send(Call { routine, context }, precision, (scope, top), &rectangle(m, n, lda), a);
}

pub(crate) fn gebr2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    scope: u8,
    top: u8,
    m: Int,
    n: Int,
    a: Sink,
    lda: Int,
    row: Int,
    column: Int,
) {
    recv(Call { routine, context }, precision, (scope, top), &rectangle(m, n, lda), a, (row, column));
}

pub(crate) fn trbs2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    scope: u8,
    top: u8,
    uplo: u8,
    diag: u8,
    m: Int,
    n: Int,
    a: Source,
    lda: Int,
) {
    send(Call { routine, context }, precision, (scope, top), &trapezoid(uplo, diag, m, n, lda), a);
}

pub(crate) fn trbr2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    scope: u8,
    top: u8,
    uplo: u8,
    diag: u8,
    m: Int,
    n: Int,
    a: Sink,
    lda: Int,
    row: Int,
    column: Int,
) {
    let shape = trapezoid(uplo, diag, m, n, lda);
    recv(Call { routine, context }, precision, (scope, top), &shape, a, (row, column));
}

fn send(call: Call, precision: Precision, (letter, top): (u8, u8), shape: &Shape, a: Source) {
    call.run(|library| {
        let (scope, top) = (scope(letter)?, topology(top)?);
        let grid = library.contexts.open(call.context)?;
        Ok(run(grid.broadcast_send_bytes(scope, top, precision, shape, &library.lent(a, shape, precision)))?)
    });
}

fn recv(call: Call, precision: Precision, (letter, top): (u8, u8), shape: &Shape, a: Sink, (row, column): (Int, Int)) {
    call.run(|library| {
        let (scope, top) = (scope(letter)?, topology(top)?);
        let grid = library.contexts.open(call.context)?;
        let from = coordinates(grid, row, column)?;
        let mut a = library.lent(a, shape, precision);
        Ok(run(grid.broadcast_recv_bytes(scope, top, precision, shape, &mut a, from))?)
    });
}
