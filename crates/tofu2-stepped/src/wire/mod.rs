//! The requests of a rank and their replies, as sequences of 64-bit words.

mod call;
mod channel;
mod errors;
mod facts;
mod gates;
mod message;
mod operations;
mod queues;
mod values;
mod waits;

pub(crate) use call::{FabricCall, ParkUntil, Parked};
pub(crate) use channel::{Channel, Received};
pub(crate) use message::{Posted, Reply, Request};
pub(crate) use operations::{Local, PostedOperation, Target};
pub(crate) use values::Wire;
pub(crate) use waits::AwaitedEvent;

/// Words that are read one after another.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u64]);

impl Reader<'_> {
    fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

/// Encodes a value.
pub(crate) fn encode<T: Wire>(value: &T) -> Vec<u64> {
    let mut words = Vec::new();
    value.put(&mut words);
    words
}

/// Decodes a value that is all of `words`.
pub(crate) fn decode<T: Wire>(words: &[u64]) -> Option<T> {
    let mut reader = Reader(words);
    let value = T::take(&mut reader)?;
    reader.0.is_empty().then_some(value)
}

/// Implements [`Wire`] for a structure.
macro_rules! wire_struct {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Wire for $type {
            fn put(&self, words: &mut Vec<u64>) {
                let $type { $($field),* } = self;
                $($field.put(words);)*
            }
            fn take(words: &mut Reader<'_>) -> Option<Self> {
                Some($type { $($field: Wire::take(words)?),* })
            }
        }
    };
}

/// Implements [`Wire`] for an enumeration: a number and the fields of each variant. Other variants are
/// encoded by `else`.
macro_rules! wire_enum {
    ($type:ident $(<$of:ty>)? { $($number:literal = $variant:ident { $($field:tt: $name:ident),* }),* $(,)? } $(else $other:expr)?) => {
        impl Wire for $type $(<$of>)? {
            fn put(&self, words: &mut Vec<u64>) {
                match self {
                    $($type::$variant { $($field: $name),* } => {
                        words.push($number);
                        $($name.put(words);)*
                    })*
                    $(other => $other(other, words),)?
                }
            }
            fn take(words: &mut Reader<'_>) -> Option<Self> {
                Some(match words.word()? {
                    $($number => {
                        $(let $name = Wire::take(words)?;)*
                        $type::$variant { $($field: $name),* }
                    })*
                    _ => return None,
                })
            }
        }
    };
}

use {wire_enum, wire_struct};
