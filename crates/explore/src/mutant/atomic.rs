//! What becomes of an atomic.

use super::{operation::Then, spoiled::Spoiled};
use rdma_fabric::{
    Amo, RemoteAddr, Result,
    provider::{Place, Posted, Sink, Source},
};

/// Bytes of the words that mutations are about.
const WORD: usize = 8;

impl Spoiled {
    pub(super) fn change(&self, word: &Place, asked: Amo<u64>) -> Result<Posted> {
        let addr = word.addr();
        if word.len() != WORD {
            return Ok(self.posted(self.provider().atomic(word, asked), Then::Nothing, Sink::none()));
        }
        let mutation = &self.mutation;
        if let Some((to, bits)) = mutation.puts(addr, asked) {
            self.post_word(to, bits)?;
        }
        if let Some(bits) = mutation.as_put(addr, asked) {
            let put = self.provider().put(word, Source::Bytes(&bits.to_ne_bytes()), None);
            return Ok(self.posted(put, Then::Zero, Sink::none()));
        }
        if let Amo::CompareSwap { expected, new } = asked
            && mutation.tears(addr, asked)
        {
            return self.torn(word, expected, new);
        }
        let first = mutation.first(addr, asked);
        let done = mutation.atomic(addr, asked);
        if first.is_some() || mutation.goes_on(addr, asked) {
            return self.one_of_several(word, asked, first, done);
        }
        let posted = self.provider().atomic(word, done);
        if matches!(posted, Posted::Over(_) | Posted::Pending(_)) {
            self.let_go(addr);
        }
        Ok(self.posted(posted, Then::Told(addr, asked), Sink::none()))
    }

    /// A comparison as a get and a put.
    fn torn(&self, word: &Place, expected: u64, new: u64) -> Result<Posted> {
        let (addr, asked) = (word.addr(), Amo::CompareSwap { expected, new });
        let (below, state) = (self.below.clone(), self.shared());
        let word = below.remote_word::<u64>(addr)?;
        Ok(self.several(async move {
            let old = below.get_word(&word).await?;
            if old == expected {
                below.put_word(&word, new).await?;
                below.flush(addr.rank).await?;
            }
            Ok(state.mutation.result(addr, asked, old))
        }))
    }

    /// An atomic after another one, or before others.
    fn one_of_several(
        &self,
        word: &Place,
        asked: Amo<u64>,
        first: Option<(RemoteAddr, Amo<u64>)>,
        done: Amo<u64>,
    ) -> Result<Posted> {
        let addr = word.addr();
        let (below, state) = (self.below.clone(), self.shared());
        let word = below.remote_word::<u64>(addr)?;
        let before = match first {
            Some((addr, amo)) => Some((below.remote_word::<u64>(addr)?, amo)),
            None => None,
        };
        Ok(self.several(async move {
            let comes_last = before.is_some();
            if let Some((word, amo)) = before {
                below.atomic(&word, amo).await?;
            }
            let mut old = below.atomic(&word, done).await?;
            let (mut last, mut found) = ((addr, asked), old);
            while !comes_last
                && state.mutation.goes_on(last.0, last.1)
                && let Some((to, amo)) = state.mutation.then(last.0, last.1, found)
            {
                found = below.atomic(&below.remote_word::<u64>(to)?, amo).await?;
                old = state.mutation.after(addr, asked, old, found);
                last = (to, amo);
            }
            Ok(state.mutation.result(addr, asked, old))
        }))
    }
}
