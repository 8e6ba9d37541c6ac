//! Vectors and deques.
//!
//! # Words
//! An object consists of some words in a rank's heap, with all lengths in bytes: body, size,
//! capacity of a vector; body, offset, size, capacity of a deque. The body is a separate allocation
//! in the heap of the object's rank (0 as long as the capacity is 0). A deque's bytes start at the
//! offset and wrap around to the start of the body. The words do not describe the type of the
//! elements.
//!
//! # Concurrent use
//! There is no lock: either any number of ranks may read at the same time, or one may change the
//! sequence; the program has to ensure this. Other ranks see a change once the call has returned.
//!
//! # Dropped futures and deaths
//! If a call is dropped half-way, either it has not changed the sequence or it is completed; its
//! allocations may stay allocated. A rank that is lost half-way may leave some elements duplicated
//! and others overwritten, but no invalid words.
//!
//! # The C interface
//! With elements of `u8`:
//!
//! | there | here |
//! |---|---|
//! | `create(n)`, of `n` bytes | [`Sequence::create_zeroed`] |
//! | `insert` of bytes at an address, `push_back`, `push_front` | [`Sequence::insert_from`], [`Sequence::extend_from`], `insert_from` at 0 |
//! | `insert_range`, `assign`, `assign_range`, `swap` | the same |
//! | `erase`, `erase_range`, `pop_back`, `pop_front` of a number of bytes | [`Sequence::erase`] |
//! | `dereference` of a vector's iterator, of a deque's | [`Cursor::address`], [`Sequence::pieces`] |
//! | `begin`, `end`, `advance`, `distance` | [`Sequence::begin`], [`Sequence::end`], [`Cursor::advance`], [`Cursor::distance`] |

#![deny(clippy::arithmetic_side_effects)]

mod bytes;
mod calls;
mod cursor;
mod raw;
mod words;

pub use cursor::Cursor;

use core::{fmt, marker::PhantomData};
use raw::Raw;

/// Consecutive elements in the heap of a rank, which any rank may read and change: a [`Sequence`]
/// that grows at its end.
pub type Vector<T> = Sequence<T, Linear>;

/// Elements in a ring in the heap of a rank, which any rank may read and change: a [`Sequence`] that
/// grows at both ends.
pub type Deque<T> = Sequence<T, Circular>;

/// The arrangement of a [`Vector`].
#[derive(Clone, Copy, Debug)]
pub enum Linear {}

/// The arrangement of a [`Deque`].
#[derive(Clone, Copy, Debug)]
pub enum Circular {}

mod sealed {
    pub trait Arrangement {
        #[doc(hidden)]
        #[allow(private_interfaces, reason = "only this crate can name it")]
        const FORM: super::words::Form;
    }
}

#[allow(private_interfaces, reason = "only this crate can name it")]
impl sealed::Arrangement for Linear {
    const FORM: words::Form = words::Form::Vector;
}

#[allow(private_interfaces, reason = "only this crate can name it")]
impl sealed::Arrangement for Circular {
    const FORM: words::Form = words::Form::Deque;
}

/// How the elements are arranged: [`Linear`] or [`Circular`].
pub trait Arrangement: sealed::Arrangement + 'static {}
impl Arrangement for Linear {}
impl Arrangement for Circular {}

/// One rank's access to a [`Vector`] or a [`Deque`].
///
/// The container itself is in global memory. A value of this type only refers to it; its
/// [address](Sequence::address) is plain data, from which any rank [makes](Sequence::from_address)
/// its own. Dropping a value destroys nothing.
///
/// A sequence of `u8` corresponds to that of the C interface, whose positions are in bytes.
///
/// Any number of ranks may read at the same time; a rank that changes the sequence must be the only
/// one to use it, which the program has to ensure. A call that is dropped half-way has either
/// changed nothing or is completed, but may leave memory allocated.
///
/// # Errors
/// All calls: the errors of [`Acp::read`](crate::Acp::read);
/// [`AcpError::Damaged`](crate::AcpError::Damaged) if there is no such container;
/// [`AcpError::OutOfRange`](crate::AcpError::OutOfRange), with nothing changed, for positions that
/// do not exist. Calls that need room: the errors of [`Acp::malloc`](crate::Acp::malloc), with
/// nothing changed.
pub struct Sequence<T, A> {
    raw: Raw,
    of: PhantomData<fn() -> (T, A)>,
}

impl<T, A> Clone for Sequence<T, A> {
    fn clone(&self) -> Self {
        Sequence { raw: self.raw.clone(), of: PhantomData }
    }
}

impl<T, A> fmt::Debug for Sequence<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequence({})", self.raw.object)
    }
}
