//! Messages between two processes.

use super::{
    awaited::{WaitingFor as _, process},
    coordinates,
    described::Described,
};
use crate::{
    boundary::Call,
    int::Int,
    matrix::{Sink, Source},
};
use blacs::Precision;
use onesided::block_on_short;

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
    send(Call { routine, context }, precision, Described::rectangle(m, n, lda), a, (row, column));
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
    recv(Call { routine, context }, precision, Described::rectangle(m, n, lda), a, (row, column));
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
    send(Call { routine, context }, precision, Described::trapezoid(uplo, diag, m, n, lda), a, (row, column));
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
    recv(Call { routine, context }, precision, Described::trapezoid(uplo, diag, m, n, lda), a, (row, column));
}

fn send(call: Call, precision: Precision, described: Described, a: Source, (row, column): (Int, Int)) {
    call.run(|library| {
        let grid = library.contexts.open(call.context)?;
        let shape = &described.shape(call, library)?;
        let to = coordinates(grid, row, column)?;
        let sent = block_on_short(grid.send_bytes(precision, shape, &library.lent(a, shape, precision), to));
        sent.waiting_for(|| format!("{} to receive", process(grid, to)))
    });
}

fn recv(call: Call, precision: Precision, described: Described, a: Sink, (row, column): (Int, Int)) {
    call.run(|library| {
        let grid = library.contexts.open(call.context)?;
        let shape = &described.shape(call, library)?;
        let from = coordinates(grid, row, column)?;
        let received = block_on_short(grid.recv_bytes(precision, shape, &mut library.lent(a, shape, precision), from));
        received.waiting_for(|| format!("a message from {}", process(grid, from)))
    });
}
