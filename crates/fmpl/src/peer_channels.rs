//! The states of a peer's channels, each created when it is first changed: most peers use one index, or
//! collectives only.

use crate::peer::ChannelState;
use core::{
    fmt,
    ops::{Index, IndexMut},
};
use std::sync::OnceLock;

/// By channel.
pub(crate) struct Channels(Box<[Option<Box<ChannelState>>]>);

/// The state of a channel that was never used.
fn unused() -> &'static ChannelState {
    static UNUSED: OnceLock<ChannelState> = OnceLock::new();
    UNUSED.get_or_init(ChannelState::default)
}

#[cold]
fn create(state: &mut Option<Box<ChannelState>>) -> &mut ChannelState {
    state.insert(Box::default())
}

impl Channels {
    pub(crate) fn new(channels: usize) -> Self {
        Channels((0..channels).map(|_| None).collect())
    }

    /// Returns a channel to be changed, if it was used before.
    #[inline(always)]
    pub(crate) fn used(&mut self, channel: usize) -> Option<&mut ChannelState> {
        self.0.get_mut(channel)?.as_deref_mut()
    }

    /// Returns the states of the first `count` channels.
    pub(crate) fn first(&self, count: usize) -> impl Iterator<Item = &ChannelState> {
        self.0[..count].iter().map(|state| match state {
            Some(state) => &**state,
            None => unused(),
        })
    }

    /// Returns the bytes that the states take.
    pub(crate) fn bytes(&self) -> usize {
        let used = self.0.iter().flatten().count();
        size_of_val(&*self.0).saturating_add(used.saturating_mul(size_of::<ChannelState>()))
    }
}

impl Index<usize> for Channels {
    type Output = ChannelState;

    #[inline(always)]
    fn index(&self, channel: usize) -> &ChannelState {
        match &self.0[channel] {
            Some(state) => state,
            None => unused(),
        }
    }
}

impl IndexMut<usize> for Channels {
    #[inline(always)]
    fn index_mut(&mut self, channel: usize) -> &mut ChannelState {
        match &mut self.0[channel] {
            Some(state) => state,
            none => create(none),
        }
    }
}

impl fmt::Debug for Channels {
    /// Formats the channels that are in use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().enumerate().filter_map(|(at, state)| Some((at, state.as_ref()?)))).finish()
    }
}
