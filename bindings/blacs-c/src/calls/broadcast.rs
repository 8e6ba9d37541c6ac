//! Broadcasts.

use super::{
    awaited::{WaitingFor as _, others, process},
    coordinates,
    described::Described,
};
use crate::{
    boundary::Call,
    int::Int,
    letters::{scope, topology},
    matrix::{Sink, Source},
};
use blacs::Precision;
use onesided::block_on_short;

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
    send(Call { routine, context }, precision, (scope, top), Described::rectangle(m, n, lda), a);
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
    recv(Call { routine, context }, precision, (scope, top), Described::rectangle(m, n, lda), a, (row, column));
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
    send(Call { routine, context }, precision, (scope, top), Described::trapezoid(uplo, diag, m, n, lda), a);
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
    let described = Described::trapezoid(uplo, diag, m, n, lda);
    recv(Call { routine, context }, precision, (scope, top), described, a, (row, column));
}

fn send(call: Call, precision: Precision, (letter, top): (u8, u8), described: Described, a: Source) {
    call.run(|library| {
        let grid = library.contexts.open(call.context)?;
        let (scope, top, shape) = (scope(letter)?, topology(top)?, &described.shape(call, library)?);
        let sent =
            block_on_short(grid.broadcast_send_bytes(scope, top, precision, shape, &library.lent(a, shape, precision)));
        sent.waiting_for(|| format!("{} to receive a broadcast", others(grid, scope)))
    });
}

fn recv(
    call: Call,
    precision: Precision,
    (letter, top): (u8, u8),
    described: Described,
    a: Sink,
    (row, column): (Int, Int),
) {
    call.run(|library| {
        let grid = library.contexts.open(call.context)?;
        let (scope, top, shape) = (scope(letter)?, topology(top)?, &described.shape(call, library)?);
        let from = coordinates(grid, row, column)?;
        let mut a = library.lent(a, shape, precision);
        let received = block_on_short(grid.broadcast_recv_bytes(scope, top, precision, shape, &mut a, from));
        received.waiting_for(|| format!("a broadcast from {}", process(grid, from)))
    });
}
