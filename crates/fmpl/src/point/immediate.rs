//! Sends that complete in the call that starts them.

use crate::{
    Communicator,
    area::{Channel, Kind, Record},
};
use rdma_fabric::{Fabric, Handle, LocalSpan, RemoteSpan, join::now, provider::SHORT};

/// The number of times that a send polls for a header before it takes another path, which takes
/// longer than these polls.
const GLANCES: u32 = 100;

/// The longest message, in bytes, that may be put before the returned future is first polled.
const LONG: usize = 1 << 20;

impl Communicator {
    /// Sends a message whose receive is posted, into a mapped buffer that was used before.
    #[inline(always)]
    pub(crate) fn send_now(&self, body: impl ImmediateSend, to: usize, channel: usize) -> Option<()> {
        let mut state = self.enter().ok()?;
        let place = state.place_of(to)?;
        let peer = &mut state.peers[place];
        let (known, channel) = (peer.channels.used(channel)?, Channel::new(&self.fabric, &peer.ends, channel));
        channel.expect_put();
        let header = (0..GLANCES).find_map(|_| channel.header_now(known.sent))?;
        let target = known.target.as_ref()?;
        let is_posted = matches!(header.kind, Kind::Posted | Kind::Window);
        if known.sending || !is_posted || header.at(channel.peer()) != target.addr() || target.len() < header.bytes {
            return None;
        }
        if header.bytes < body.bytes() {
            return None;
        }
        body.put_now(&self.fabric, target)?;
        if !self.puts_in_order {
            self.fabric.direct().barrier();
        }
        // If the flag can't be put immediately, the body is put again.
        let word = Record::first_word(Kind::Arrived, body.bytes(), known.sent);
        if !channel.put_flag_now(known.sent, word) {
            return None;
        }
        known.count_direct();
        Some(())
    }
}

/// The body of a message that may be put immediately.
pub(crate) trait ImmediateSend {
    fn bytes(&self) -> usize;

    /// Puts it immediately, or not at all.
    fn put_now(&self, fabric: &Fabric, target: &RemoteSpan<u8>) -> Option<()>;
}

impl ImmediateSend for &[u8] {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn put_now(&self, fabric: &Fabric, target: &RemoteSpan<u8>) -> Option<()> {
        if self.len() <= SHORT {
            return fabric.direct().put_slice_at(target, 0, self);
        }
        put_long_now(fabric, target, self.len(), |to| fabric.try_put_slice(to, self, None).ok())
    }
}

impl ImmediateSend for &LocalSpan<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn put_now(&self, fabric: &Fabric, target: &RemoteSpan<u8>) -> Option<()> {
        put_long_now(fabric, target, self.len(), |to| fabric.try_put(to, LocalSpan::clone(self), None).ok())
    }
}

#[inline(never)]
fn put_long_now<T: Unpin + 'static>(
    fabric: &Fabric,
    target: &RemoteSpan<u8>,
    bytes: usize,
    post: impl FnOnce(&RemoteSpan<u8>) -> Option<Handle<T>>,
) -> Option<()> {
    // Other calls wait during the copy.
    let is_direct = fabric.direct().admits_word_at::<_, u64>(target, 0);
    if bytes > LONG || !is_direct {
        return None;
    }
    let put = post(&*target.part(0..bytes).ok()?)?;
    now(put)?.ok().map(drop)
}
