//! Vectors and deques.
//!
//! # Words
//! An object is some words in a rank's heap, with all lengths in bytes: body, size, capacity of a
//! vector; body, offset, size, capacity of a deque. The body is an allocation of its own, in the
//! heap of the object's rank (0 as long as the capacity is 0); a deque's bytes begin at the offset
//! and go on at the beginning of the body. The words say nothing of the elements' type.
//!
//! # Concurrent use
//! There is no lock: any number of ranks may read at the same time, or one may change, and it is the
//! program's business to see to that. Another rank sees a change as soon as the call is over.
//!
//! # Dropped futures and deaths
//! A call that is dropped half-way has not changed the sequence, or is carried through; what it had
//! allocated may stay allocated. A rank that is lost in the middle may leave some elements twice and
//! others overwritten, but no words that lead astray.
//!
//! # The C interface
//! With elements of `u8`:
//!
//! | there | here |
//! |---|---|
//! | `create(n)`, of `n` bytes | [`Sequence::create`], which is empty and has room for `n`; then [`Sequence::extend_from_slice`] |
//! | `insert` of bytes at an address, `push_back`, `push_front` | [`Sequence::insert_from`], [`Sequence::extend_from`], `insert_from` at 0 |
//! | `insert_range`, `assign`, `assign_range`, `swap` | the same |
//! | `erase`, `erase_range`, `pop_back`, `pop_front` of so many bytes | [`Sequence::erase`] |
//! | `dereference` of a vector's iterator, of a deque's | [`Cursor::address`], [`Sequence::pieces`] |
//! | `begin`, `end`, `advance`, `distance` | [`Sequence::begin`], [`Sequence::end`], [`Cursor::advance`], [`Cursor::distance`] |

mod bytes;
mod calls;
mod cursor;
mod raw;
mod words;

pub use cursor::Cursor;

use core::{fmt, marker::PhantomData};
use raw::Raw;

/// Elements one after another in the heap of a rank, which any rank may read and change: a
/// [`Sequence`] that grows at its end.
pub type Vector<T> = Sequence<T, Linear>;

/// Elements in a ring in the heap of a rank, which any rank may read and change: a [`Sequence`] that
/// grows at both ends.
pub type Deque<T> = Sequence<T, Circular>;

/// Of a [`Vector`].
#[derive(Clone, Copy, Debug)]
pub enum Linear {}

/// Of a [`Deque`].
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

/// One rank's way to a [`Vector`] or a [`Deque`].
///
/// The container itself is in global memory. A value of this type is only where it is, and how to
/// get there; its [address](Sequence::address) is plain data, from which any rank
/// [makes](Sequence::from_address) its own. Dropping a value destroys nothing.
///
/// As a sequence of `u8`, it is that of the C interface, whose positions are in bytes.
///
/// Any number of ranks may read at the same time; whoever changes must be alone, for which the
/// program has to see. Calls that are dropped half-way have changed nothing or are carried through,
/// but may leave memory allocated.
///
/// # Errors
/// All calls: what [`Acp::read`](crate::Acp::read) meets; [`AcpError::Damaged`](crate::AcpError::Damaged) if there is
/// no such container; [`AcpError::OutOfRange`](crate::AcpError::OutOfRange), and nothing has
/// changed, for positions that do not exist. Calls that need room: what [`Acp::malloc`](crate::Acp::malloc)
/// meets, and
/// nothing has changed.
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
