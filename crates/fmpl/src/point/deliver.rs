//! The body of a message on its way into the receive buffer.

use super::Source;
use crate::{
    FmplError, Result,
    area::{Channel, Ends, Kind, Record, Slot},
    cost,
};
use rdma_fabric::{Fabric, Handle, LocalSpan, Rank, Refused, RemoteSpan, op::Put};

/// The source of a put into one receive buffer.
pub(crate) enum Body<'a> {
    /// Fabric memory of this rank.
    Span(&'a LocalSpan<u8>),
    /// `len` bytes of a message, from byte `at` on.
    Part { source: &'a mut dyn Source, at: usize, len: usize },
}

impl Body<'_> {
    fn bytes(&self) -> usize {
        match self {
            Body::Span(span) => span.len(),
            Body::Part { len, .. } => *len,
        }
    }

    /// Returns the length of the message from here to its end.
    fn rest(&self) -> usize {
        match self {
            Body::Span(span) => span.len(),
            Body::Part { source, at, .. } => source.bytes() - at,
        }
    }
}

/// Where a receiver waits for the flag of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FlagPlace {
    /// In this channel.
    Channel(usize),
    /// In the slot for receives of any index; the flag names the message's index.
    Slot { index: usize },
}

/// A message, once its receive is known: number `n` among those with this place.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) ends: &'a Ends,
    pub(crate) flag: FlagPlace,
    pub(crate) n: u64,
}

impl Message<'_> {
    fn peer(&self) -> Rank {
        self.ends.there.rank()
    }

    /// Posts the flag; returns the handle unless the put completes immediately.
    async fn post_flag(&self, word: u64) -> Result<Option<Handle<()>>> {
        let Message { fabric, ends, flag, n } = *self;
        match flag {
            FlagPlace::Channel(channel) => Channel::new(fabric, ends, channel).post_flag(n, word).await,
            FlagPlace::Slot { index } => Slot::new(fabric, ends).post_flag(n, word, index).await,
        }
    }

    /// Puts the flag from a detached task.
    async fn put_deferred_flag(&self, word: u64) -> Result<()> {
        let Message { fabric, ends, flag, n } = *self;
        match flag {
            FlagPlace::Channel(channel) => Channel::new(fabric, ends, channel).put_deferred_flag(n, word).await,
            FlagPlace::Slot { index } => Slot::new(fabric, ends).put_deferred_flag(n, word, index).await,
        }
    }
}

/// Reports that a message of `bytes` bytes is too long for its receive. If the future is dropped, the
/// receiver is still notified.
pub(crate) async fn refuse(message: Message<'_>, bytes: usize) -> Result<()> {
    let word = Record::first_word(Kind::TooLong, bytes, message.n);
    let mut owed = DeferredFlag { message: Some(message), word };
    let flag = message.post_flag(word).await?;
    owed.message = None;
    match flag {
        Some(flag) => Ok(flag.await?),
        None => Ok(()),
    }
}

/// Puts a message, or a part of one, into its receive buffer, then a flag with the length from
/// there to the message's end. If the future is dropped, posted data is still sent, or the receiver
/// is notified that it will not arrive. The target is `resolved`, or else the address in the
/// header.
pub(crate) async fn deliver(
    message: Message<'_>,
    header: Record,
    resolved: Option<RemoteSpan<u8>>,
    body: Body<'_>,
) -> Result<RemoteSpan<u8>> {
    let fabric = message.fabric;
    post(message, header, resolved, body).await?.left(fabric).await
}

/// A message that has been posted completely: its receiver no longer depends on this member.
pub(crate) struct Delivery {
    found: Result<RemoteSpan<u8>>,
    body: Bodies,
    flag: Option<Handle<()>>,
}

enum Bodies {
    Posted(Result<Posted>),
    Left(Result<()>),
}

impl Delivery {
    /// Waits until it has been sent; returns the receive buffer.
    pub(crate) async fn left(self, fabric: &Fabric) -> Result<RemoteSpan<u8>> {
        let put = match self.body {
            Bodies::Posted(posted) => left(fabric, posted).await,
            Bodies::Left(put) => put,
        };
        if let Some(flag) = self.flag {
            flag.await?;
        }
        put.and(self.found)
    }
}

/// Posts a message and its flag, as [`deliver`] does.
pub(crate) async fn post(
    message: Message<'_>,
    header: Record,
    resolved: Option<RemoteSpan<u8>>,
    body: Body<'_>,
) -> Result<Delivery> {
    let Message { fabric, n, .. } = message;
    let rest = body.rest();
    let (arrived, not_there) = [Kind::Arrived, Kind::NotThere].map(|kind| Record::first_word(kind, rest, n)).into();
    let mut owed = DeferredFlag { message: Some(message), word: not_there };
    let found = match resolved {
        Some(span) => Ok(span),
        None => fabric.remote_span::<u8>(header.at(message.peer()), header.bytes),
    };
    let posted = match &found {
        Ok(span) => post_body(fabric, span, body).await,
        Err(error) => Err(error.clone().into()),
    };
    if posted.is_ok() {
        owed.word = arrived;
    }
    let found = found.map_err(FmplError::from);
    if fabric.caps().puts_in_order {
        let flag = message.post_flag(owed.word).await?;
        owed.message = None;
        return Ok(Delivery { found, body: Bodies::Posted(posted), flag });
    }
    let put = left(fabric, posted).await;
    if put.is_err() {
        owed.word = not_there;
    }
    fabric.flush(message.peer()).await?;
    let flag = message.post_flag(owed.word).await?;
    owed.message = None;
    if let Some(flag) = flag {
        flag.await?;
    }
    Ok(Delivery { found, body: Bodies::Left(put), flag: None })
}

/// A posted body, in one put for each chunk.
#[derive(Default)]
struct Posted {
    span: Option<Handle<LocalSpan<u8>>>,
    /// Most bodies have only this chunk.
    first: Option<Handle<()>>,
    others: Vec<Handle<()>>,
}

async fn post_body(fabric: &Fabric, to: &RemoteSpan<u8>, body: Body<'_>) -> Result<Posted> {
    let (mut posted, to) = (Posted::default(), to.part(0..body.bytes())?);
    let span = match &body {
        Body::Span(span) => Some(LocalSpan::clone(span)),
        Body::Part { source, at, len } => source.span().map(|span| span.slice(*at..at + len)).transpose()?,
    };
    if let Some(from) = span {
        posted.span = Some(fabric.post(Put { to: &to, from, notice: None }).await?);
    } else if let Body::Part { source, at, len } = body {
        let mut done = 0;
        loop {
            // A message of no bytes has one empty chunk.
            let chunk = if len == 0 { &[] } else { source.chunk(at + done, len - done) };
            let to = to.part(done..done + chunk.len())?;
            match fabric.try_put_slice(&to, chunk, None) {
                Ok(handle) if posted.first.is_none() => posted.first = Some(handle),
                Ok(handle) => posted.others.push(handle),
                Err(Refused::Full(())) => fabric.put_slice(&to, chunk).await?,
                Err(Refused::Failed(error, ())) => return Err(error.into()),
            }
            done += chunk.len();
            if done >= len {
                break;
            }
        }
    }
    Ok(posted)
}

/// Waits until a body has been sent, and charges for it.
async fn left(fabric: &Fabric, posted: Result<Posted>) -> Result<()> {
    fabric.charge(cost::DATA).await;
    let Posted { span, first, others } = posted?;
    if let Some(span) = span {
        span.await?;
    }
    for handle in first.into_iter().chain(others) {
        handle.await?;
    }
    Ok(())
}

/// The flag of a message whose body may be on its way.
struct DeferredFlag<'a> {
    message: Option<Message<'a>>,
    word: u64,
}

impl Drop for DeferredFlag<'_> {
    fn drop(&mut self) {
        let Some(Message { fabric, ends, flag, n }) = self.message.take() else { return };
        let (own, ends, word) = (fabric.clone(), ends.clone(), self.word);
        fabric.detach(async move {
            let message = Message { fabric: &own, ends: &ends, flag, n };
            // Errors are ignored, since no call is left to return them.
            if own.flush(message.peer()).await.is_ok() {
                let _ = message.put_deferred_flag(word).await;
            }
        });
    }
}
