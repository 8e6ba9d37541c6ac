//! Looking at the elements of a table.

use super::{
    Element, Kind,
    element::{NEXT, Probe, to_word},
};
use crate::{AcpError, GlobalAddress, Result, container::mapped::Memory};

/// The elements of a table, generic over the access to their memory.
#[derive(Clone, Copy)]
pub(super) struct Elements<M> {
    pub(super) memory: M,
    pub(super) kind: Kind,
}

impl<M: Memory> Elements<M> {
    /// Reads the words of an element, and as much of the rest as one short read yields.
    pub(super) async fn probe(&self, address: GlobalAddress) -> Result<Probe, M::Error> {
        let mut probe = Probe::new(self.memory.acp(), self.kind, address);
        self.memory.read(address, 0, probe.room()).await?;
        probe.look()?;
        Ok(probe)
    }

    /// Puts an element that follows `previous`.
    #[inline(always)]
    pub(super) async fn put(
        &self,
        address: GlobalAddress,
        previous: Option<GlobalAddress>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), M::Error> {
        let ([first, second], previous) = (self.kind.words(1, key, value), to_word(previous));
        match self.kind {
            Kind::Set => self.memory.put_words(address, NEXT, [0, previous, first]).await?,
            _ => self.memory.put_words(address, NEXT, [0, previous, first, second]).await?,
        }
        let key_at = self.kind.head_bytes() as u64;
        self.memory.put(address, key_at, key).await?;
        self.memory.put(address, key_at + key.len() as u64, value).await
    }

    /// Searches at most `left` elements, starting at `next`, for one with this key.
    pub(super) async fn seek(
        &self,
        mut next: Option<GlobalAddress>,
        mut left: u64,
        key: &[u8],
    ) -> Result<Option<Probe>, M::Error> {
        while let Some(address) = next {
            let Some(rest) = left.checked_sub(1) else { return Err(AcpError::Damaged { address }.into()) };
            left = rest;
            let mut probe = Probe::new(self.memory.acp(), self.kind, address);
            self.memory.read(address, 0, probe.room()).await?;
            probe.look()?;
            if probe.may_have(key) && (key.len() <= probe.begun().len() || self.has_rest(&probe, key).await?) {
                return Ok(Some(probe));
            }
            next = probe.head.next;
        }
        Ok(None)
    }

    /// Returns whether an element has this key.
    pub(super) async fn has_key(&self, probe: &Probe, key: &[u8]) -> Result<bool, M::Error> {
        Ok(probe.may_have(key) && (key.len() <= probe.begun().len() || self.has_rest(probe, key).await?))
    }

    /// Returns whether an element that may have the key has its remaining bytes.
    async fn has_rest(&self, probe: &Probe, key: &[u8]) -> Result<bool, M::Error> {
        let known = probe.begun().len();
        let mut rest = vec![0; key.len() - known];
        self.memory.read(probe.key_at()?, known as u64, &mut rest).await?;
        Ok(rest == key[known..])
    }

    /// Reads an element's value, truncated to the length of `into`.
    pub(super) async fn read_value(&self, probe: &Probe, into: &mut [u8]) -> Result<(), M::Error> {
        let into = match into.len() {
            room if room > probe.head.value => &mut into[..probe.head.value],
            _ => into,
        };
        match probe.begun().get(probe.head.key..) {
            Some(begun) if begun.len() >= into.len() => {
                into.copy_from_slice(&begun[..into.len()]);
                Ok(())
            }
            _ => self.memory.read(probe.value_at()?, 0, into).await,
        }
    }

    /// Reads an element completely.
    pub(super) async fn read(&self, probe: &Probe) -> Result<Element, M::Error> {
        let mut body = vec![0; probe.head.key + probe.head.value];
        let begun = probe.begun();
        body[..begun.len()].copy_from_slice(begun);
        if begun.len() < body.len() {
            let begun = begun.len();
            self.memory.read(probe.key_at()?, begun as u64, &mut body[begun..]).await?;
        }
        Ok(Element { address: probe.address, count: probe.head.count, body, key_bytes: probe.head.key })
    }
}
