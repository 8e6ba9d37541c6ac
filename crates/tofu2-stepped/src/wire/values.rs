//! Numbers, texts, collections and names.

use super::Reader;
use rdma_fabric::{
    Rank, Time,
    barrier::GateId,
    control_queue::{QueueId, Stadd},
};
use std::{
    collections::HashSet,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

/// A value of the requests.
pub(crate) trait Wire: Sized {
    /// Appends the value.
    fn put(&self, words: &mut Vec<u64>);
    /// Reads a value; `None` for words that no value has.
    fn take(words: &mut Reader<'_>) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Wire for $type {
            fn put(&self, words: &mut Vec<u64>) {
                words.push(*self as u64);
            }
            fn take(words: &mut Reader<'_>) -> Option<Self> {
                words.word()?.try_into().ok()
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, usize);

impl Wire for () {
    fn put(&self, _: &mut Vec<u64>) {}
    fn take(_: &mut Reader<'_>) -> Option<Self> {
        Some(())
    }
}

impl Wire for bool {
    fn put(&self, words: &mut Vec<u64>) {
        words.push((*self).into());
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        Some(words.word()? == 1)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, words: &mut Vec<u64>) {
        self.is_some().put(words);
        if let Some(value) = self {
            value.put(words);
        }
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        if bool::take(words)? { T::take(words).map(Some) } else { Some(None) }
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, words: &mut Vec<u64>) {
        self.is_ok().put(words);
        match self {
            Ok(value) => value.put(words),
            Err(error) => error.put(words),
        }
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        if bool::take(words)? { T::take(words).map(Ok) } else { E::take(words).map(Err) }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, words: &mut Vec<u64>) {
        self.len().put(words);
        self.iter().for_each(|value| value.put(words));
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        (0..usize::take(words)?).map(|_| T::take(words)).collect()
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, words: &mut Vec<u64>) {
        self.0.put(words);
        self.1.put(words);
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        Some((A::take(words)?, B::take(words)?))
    }
}

impl Wire for String {
    fn put(&self, words: &mut Vec<u64>) {
        self.len().put(words);
        for chunk in self.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            words.push(u64::from_ne_bytes(bytes));
        }
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        let len = usize::take(words)?;
        let bytes: Vec<[u8; 8]> =
            (0..len.div_ceil(8)).map(|_| words.word().map(u64::to_ne_bytes)).collect::<Option<_>>()?;
        String::from_utf8(bytes.as_flattened().get(..len)?.to_vec()).ok()
    }
}

/// A text of the program. Received texts are kept for the life of the process, each once.
impl Wire for &'static str {
    fn put(&self, words: &mut Vec<u64>) {
        (*self).to_owned().put(words);
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        static KNOWN: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
        let text = String::take(words)?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(text.as_str()) {
            return Some(known);
        }
        let text: &'static str = text.leak();
        known.insert(text);
        Some(text)
    }
}

/// In nanoseconds, at most 584 years.
impl Wire for Duration {
    fn put(&self, words: &mut Vec<u64>) {
        words.push(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX));
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        words.word().map(Duration::from_nanos)
    }
}

macro_rules! names {
    ($($type:ty: $put:expr, $take:expr;)*) => {
        $(impl Wire for $type {
            fn put(&self, words: &mut Vec<u64>) {
                words.push($put(*self).into());
            }
            fn take(words: &mut Reader<'_>) -> Option<Self> {
                $take(Wire::take(words)?)
            }
        })*
    };
}

names! {
    Time: Time::as_picos, |picos| Some(Time::from_picos(picos));
    Rank: Rank::number, |number| Some(Rank::new(number));
    QueueId: QueueId::to_bits, QueueId::from_bits;
    Stadd: Stadd::to_bits, |bits| Some(Stadd::from_bits(bits));
    GateId: GateId::to_bits, |bits| Some(GateId::from_bits(bits));
}
