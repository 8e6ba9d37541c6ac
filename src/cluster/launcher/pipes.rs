//! The pipes of an ssh process, as its launcher's threads write and read them.

use super::frames::{BEGIN, Order, Report};
use std::{
    io::{self, BufRead, Write},
    process::ChildStdin,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

/// What is heard of a host.
pub(super) enum Event {
    Began,
    Told(Report),
    Closed,
}

/// Writes orders for an agent until there are no more; when there are none for `beat`, that the launcher
/// lives.
pub(super) fn write_orders(mut to: ChildStdin, orders: &Receiver<Order>, beat: Duration) {
    loop {
        let order = match orders.recv_timeout(beat) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => Order::Beat,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if order.write(&mut to).is_err() {
            return;
        }
    }
}

/// Reads what an agent tells. Output of ranks is written before the next is read.
pub(super) fn read_reports(mut from: impl BufRead, tell: &dyn Fn(Event)) {
    let mut line = Vec::new();
    // What a shell says before is not the agent's.
    while line != [BEGIN.as_bytes(), b"\n"].concat() {
        line.clear();
        if !from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            return tell(Event::Closed);
        }
    }
    tell(Event::Began);
    loop {
        match Report::read(&mut from) {
            Ok(Some(Report::Out(bytes))) => {
                let mut out = io::stdout().lock();
                let _ = out.write_all(&bytes).and_then(|()| out.flush());
            }
            Ok(Some(Report::Err(bytes))) => _ = io::stderr().lock().write_all(&bytes),
            Ok(Some(report)) => tell(Event::Told(report)),
            Ok(None) | Err(_) => return tell(Event::Closed),
        }
    }
}
