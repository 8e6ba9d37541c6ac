//! This process's standard input, for rank 0 on another host. It is sent in pieces, so that a rank
//! that does not read its input blocks nothing else.

use super::{frames::Order, spawn::spawn};
use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, Sender},
};

/// The longest piece in bytes.
const PIECE: usize = 32 << 10;

/// Passes on the standard input until it ends; each piece after the previous one was `taken`.
///
/// # Errors
/// The thread can't be started.
pub(super) fn pass_on(orders: Sender<Order>, taken: Receiver<()>) -> io::Result<()> {
    spawn("standard input", move || {
        let mut piece = vec![0; PIECE];
        loop {
            let order = match io::stdin().read(&mut piece) {
                Ok(0) | Err(_) => Order::InputEnd,
                Ok(bytes) => Order::Input(piece[..bytes].to_vec()),
            };
            let last = order == Order::InputEnd;
            if orders.send(order).is_err() || last || taken.recv().is_err() {
                return;
            }
        }
    })
}
